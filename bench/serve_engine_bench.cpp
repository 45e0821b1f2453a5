// Figures of the engine on SmolLM2-135M's shape, in one process, bf16, greedy: serve_engine_bench ROW ... [--clients
// 32,8,1] [--prompt 265] [--new 64] [--rounds 2] [--pairs 3] [--tokenizer FOLDER] [--set KEY=VALUE] [--peer
// KIND:MODEL]. Without a row: load. Both sides of a ratio run in turns, `pairs` times. Servers are compared by
// bench/serve_peers.py, masks of constrained output by constraint_bench, bookkeeping of a step by scheduler_bench.
//   load      clients that ask again as soon as they are answered, then the plain loop, one at a time
//   batch     64 requests at once, against a peer
//   first     one prompt alone to its first token, against a peer
//   outside   the share of that time that neither products with weights nor attention take
//   step      a step in which all clients decode, of 128 tokens and more, over a step of one
//   long      16 sequences that decode, beside a prompt of 16k tokens over without it
//   cached    a prompt of 2,048 tokens of which 32 are new, over one that is new
//   pool      64 requests in a quarter of the pages that they need, over as many as they need
//   lookup    prompt lookup with one client, over without: answers that repeat themselves, and drawn ones
//   schema    a JSON schema on all clients over free answers; wants --tokenizer
//   overlap   steps that overlap (overlap_execution) over steps in turn: tokens/s, and CPU time of a token; with
//             --model FOLDER on that model
//   adapters  one and eight adapters of rank 16, mixed over 32 clients, over the base alone: tokens/s, CPU time of a
//             token
//   memory    resident memory over weights, pages and 150 MB
// Peers (bench/serve_engine_peer.py, with the Python of EASYDEL_PEER_PYTHON): openvino:FILE.gguf,
// generate_batch:FOLDER.
#include <atomic>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/overrides.h"
#include "easydel/models/adapter.h"
#include "easydel/models/model.h"
#include "engine_load.h"
#include "peer.h"

namespace easydel::bench {
namespace {

struct Bench {
  int64_t prompt, fresh, rounds, pairs;
  std::vector<int64_t> clients;
  std::string peer;   // KIND:MODEL
  std::string model;  // a folder; empty: the shape
  std::vector<std::string> settings;
  const ServedShape& shape;

  int64_t most_clients() const { return *std::ranges::max_element(clients); }
  Load load(esurge::Engine& engine, int64_t count, int64_t salt,
            const std::function<void(esurge::Request&, int64_t client)>& change = {}) const {
    return serve(engine, count, rounds, [&](int64_t client, int64_t round) {
      esurge::Request request = request_of(salt * 1000003 + client * 131 + round, prompt, fresh);
      if (change) change(request, client);
      return request;
    });
  }
};

const std::vector<std::string> uncached = {"enable_prefix_caching=false", "max_model_len=2048"};

// Runs both sides in turns and prints the ratio of their figures, pair by pair.
void compare(const Bench& bench, const char* unit, const char* name, const std::function<double(int64_t pair)>& ours,
             const char* other_name, const std::function<double(int64_t pair)>& other, bool rates = true) {
  std::vector<double> own, others, ratios;
  for (int64_t pair = 0; pair < bench.pairs; ++pair) {
    own.push_back(ours(pair)), others.push_back(other(pair));
    ratios.push_back(own.back() / others.back());
  }
  const int digits = rates ? 1 : 2;
  std::printf("  %s %s %s; %s %s %s; ratio %s\n", name, spread_of(own, digits).c_str(), unit, other_name,
              spread_of(others, digits).c_str(), unit, spread_of(ratios, 3).c_str());
}

void load(const Bench& bench) {
  const auto engine = bench.shape.engine(uncached);
  bench.load(*engine, 1, 0);  // packs the weights
  for (const int64_t clients : bench.clients) {
    const Load one = bench.load(*engine, clients, clients);
    std::printf(
        "  %lld clients: %.1f tokens/s; first token %.0f ms (p50), %.0f ms (p99); between %.1f ms (p50), %.1f ms "
        "(p99)\n",
        static_cast<long long>(clients), one.rate(), 1e3 * quantile(one.first, 0.5), 1e3 * quantile(one.first, 0.99),
        1e3 * quantile(one.between, 0.5), 1e3 * quantile(one.between, 0.99));
  }
  compare(
      bench, "tokens/s", "one client", [&](int64_t pair) { return bench.load(*engine, 1, 7 + pair).rate(); },
      "plain loop", [&](int64_t) { return plain_loop(bench.shape.folder(), bench.prompt, bench.fresh, bench.rounds); });
  const esurge::EngineMetrics metrics = engine->metrics();
  std::printf("  %lld steps of %.1f tokens, %.2f ms on average\n", static_cast<long long>(metrics.steps),
              metrics.step_tokens.mean(), 1e3 * metrics.step_seconds.mean());
}

std::unique_ptr<Peer> peer_of(const Bench& bench) {
  const size_t colon = bench.peer.find(':');
  if (colon == std::string::npos) return nullptr;
  auto peer = std::make_unique<Peer>(
      "serve_engine_peer.py", std::vector<std::string>{bench.peer.substr(0, colon), bench.peer.substr(colon + 1)});
  return *peer ? std::move(peer) : nullptr;
}

void batch(const Bench& bench) {
  const auto peer = peer_of(bench);
  const auto engine = bench.shape.engine(uncached);
  const auto ours = [&](int64_t pair) {
    return serve(*engine, 64, 1,
                 [&](int64_t client, int64_t) { return request_of(pair * 1000 + client, bench.prompt, bench.fresh); })
        .rate();
  };
  ours(99);
  if (!peer) return void(std::printf("  %.1f tokens/s; no peer\n", ours(0)));
  const std::string line = str("load 64 ", bench.prompt, " ", bench.fresh);
  compare(bench, "tokens/s", "engine", ours, bench.peer.c_str(),
          [&](int64_t) { return 64.0 * double(bench.fresh) / peer->number(line); });
}

void first(const Bench& bench) {
  const auto peer = peer_of(bench);
  // A prompt alone is computed in one step.
  const auto engine =
      bench.shape.engine({"enable_prefix_caching=false", "max_model_len=4096", "max_num_batched_tokens=4096"});
  for (const int64_t tokens : {128, 512, 2048}) {
    const auto ours = [&](int64_t pair) {
      return *engine->generate(request_of(pair * 77 + tokens, tokens, 1)).first_token_time * 1e3;
    };
    ours(99);
    std::printf("  prompt of %lld tokens:\n", static_cast<long long>(tokens));
    if (!peer) {
      std::printf("  %.1f ms; no peer\n", ours(0));
      continue;
    }
    const std::string line = str("first ", tokens);
    peer->number(line);
    compare(bench, "ms", "engine", ours, bench.peer.c_str(), [&](int64_t) { return 1e3 * peer->number(line); });
  }
}

void outside(const Bench& bench) { print_rest_of_prompts(bench.shape, bench.pairs); }

void step(const Bench& bench) {
  constexpr int64_t context = 128, steps = 64;
  const auto engine = bench.shape.engine(
      {"enable_prefix_caching=false", "max_model_len=8192", "max_num_seqs=64", "max_num_batched_tokens=8192"});
  decode_step(*engine, 64, context, 8, 1);
  for (const int64_t sequences : bench.clients) {
    const std::string name = str(sequences, " sequences");
    compare(
        bench, "ms", name.c_str(),
        [&](int64_t pair) { return 1e3 * decode_step(*engine, sequences, context, steps, 1000 * pair); }, "one",
        [&](int64_t pair) { return 1e3 * decode_step(*engine, 1, context, steps, 1000 * pair); }, false);
  }
}

void long_prompt(const Bench& bench) {
  const auto engine = bench.shape.engine({"enable_prefix_caching=false", "max_model_len=32768"});
  constexpr int64_t beside = 16;
  engine->generate(request_of(5, 300, 8));
  std::vector<double> ratios;
  for (int64_t pair = 0; pair < bench.pairs; ++pair) {
    const auto tokens = [&] { return engine->metrics().generated_tokens; };
    const int64_t start = tokens();
    std::vector<esurge::RequestId> running;
    for (int64_t i = 0; i < beside; ++i)
      running.push_back(engine->add(request_of(pair * 100 + i, bench.prompt, 8000), [](const auto&) {}));
    const auto rate = [&](double seconds, const std::function<bool()>& done) {
      const int64_t before = tokens();
      const auto begin = Clock::now();
      while (done ? !done() : seconds_since(begin) < seconds) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return double(tokens() - before) / seconds_since(begin);
    };
    while (tokens() < start + 4 * beside) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const double alone = rate(5, {});
    std::atomic<bool> finished = false;
    const auto began = Clock::now();
    engine->add(request_of(-1 - pair, 16384, 1),
                [&](const esurge::RequestOutput& output) { finished = output.finished; });
    const double mixed = rate(0, [&] { return finished.load(); });
    ratios.push_back(mixed / alone);
    std::printf("  %.1f tokens/s; beside a prompt of 16,384 tokens, for %.1f s, %.1f: %.3f\n", alone,
                seconds_since(began), mixed, ratios.back());
    for (const esurge::RequestId id : running) engine->abort(id);
    while (engine->metrics().running_requests > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::printf("  ratio %s\n", spread_of(ratios, 3).c_str());
}

void cached(const Bench& bench) {
  const auto engine = bench.shape.engine({"max_model_len=4096"});
  engine->generate(request_of(5, 300, 8));
  constexpr int64_t tokens = 2048, fresh = 32;
  const auto first_token = [&](esurge::Request request) {
    const esurge::RequestOutput output = engine->generate(std::move(request));
    check(output.error.empty(), output.error);
    return 1e3 * *output.first_token_time;
  };
  compare(
      bench, "ms", "cached",
      [&](int64_t pair) {
        esurge::Request request = request_of(pair, tokens, 1);
        first_token(request);
        auto& ids = std::get<std::vector<text::TokenId>>(request.prompt);
        std::ranges::copy(prompt_ids(-1 - pair, fresh), ids.end() - fresh);
        return first_token(request);
      },
      "cold", [&](int64_t pair) { return first_token(request_of(1000 + pair, tokens, 1)); });
}

void pool(const Bench& bench) {
  constexpr int64_t requests = 64, page = 16;
  const int64_t need = requests * ((bench.prompt + bench.fresh + page - 1) / page);
  const std::vector<std::string> keys = {"enable_prefix_caching=false", "max_model_len=2048", "page_size=16",
                                         "max_num_seqs=64", "max_num_batched_tokens=512"};
  const auto all = bench.shape.engine(keys, need + requests), quarter = bench.shape.engine(keys, need / 4);
  const auto rate = [&](esurge::Engine& engine, int64_t pair) {
    return serve(engine, requests, 1,
                 [&](int64_t client, int64_t) { return request_of(pair * 1000 + client, bench.prompt, bench.fresh); })
        .rate();
  };
  rate(*all, 99);
  compare(
      bench, "tokens/s", "a quarter", [&](int64_t pair) { return rate(*quarter, pair); }, "all",
      [&](int64_t pair) { return rate(*all, pair); });
  const esurge::EngineMetrics metrics = quarter->metrics();
  std::printf("  computed again: %.2f %% of %lld tokens, %lld preemptions\n",
              100 * double(metrics.recomputed_tokens) / double(metrics.step_tokens.sum()),
              static_cast<long long>(metrics.step_tokens.sum()), static_cast<long long>(metrics.preemptions));
}

void lookup(const Bench& bench) {
  const auto plain = bench.shape.engine(uncached);
  std::vector<std::string> keys = uncached;
  keys.push_back("num_speculative_tokens=8");
  const auto guessing = bench.shape.engine(keys);
  for (const bool repeats : {true, false}) {
    const auto rate = [&](esurge::Engine& engine, int64_t pair) {
      return bench
          .load(engine, 1, 50 + pair,
                [&](esurge::Request& request, int64_t) {
                  request.sampling.max_tokens = 4 * bench.fresh;
                  request.sampling.seed = 1;
                  auto& ids = std::get<std::vector<text::TokenId>>(request.prompt);
                  if (!repeats) request.sampling.temperature = 1;
                  if (repeats)
                    for (size_t i = 32; i < ids.size(); ++i) ids[i] = ids[i % 32];
                })
          .rate();
    };
    rate(*plain, 99), rate(*guessing, 99);
    const auto before = guessing->metrics();
    std::printf("  %s:\n", repeats ? "greedy, after a prompt that repeats 32 tokens" : "drawn at temperature 1");
    compare(
        bench, "tokens/s", "prompt lookup", [&](int64_t pair) { return rate(*guessing, pair); }, "without",
        [&](int64_t pair) { return rate(*plain, pair); });
    const auto after = guessing->metrics();
    std::printf("  of %lld guesses %lld were right, for %lld tokens\n",
                static_cast<long long>(after.draft_tokens - before.draft_tokens),
                static_cast<long long>(after.accepted_draft_tokens - before.accepted_draft_tokens),
                static_cast<long long>(after.generated_tokens - before.generated_tokens));
  }
}

constexpr const char* person_schema = R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 60},
  "age": {"type": "integer", "minimum": 0, "maximum": 150}, "email": {"type": "string", "format": "email"},
  "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 8}, "address": {"type": "object", "properties":
  {"street": {"type": "string"}, "city": {"enum": ["Paris", "London", "Berlin"]}}, "required": ["street", "city"]}},
  "required": ["name", "age", "email", "tags", "address"], "additionalProperties": false})";

void schema(const Bench& bench) {
  const auto engine = bench.shape.engine(uncached);
  const auto rate = [&](int64_t pair, bool constrained) {
    return bench
        .load(*engine, bench.most_clients(), pair,
              [&](esurge::Request& request, int64_t) {
                request.sampling.ignore_eos = false;
                request.sampling.min_tokens = bench.fresh;
                if (!constrained) return;
                request.sampling.min_tokens = 0;
                request.sampling.guided_decoding.emplace().json = Value::text(person_schema);
              })
        .rate();
  };
  rate(99, true);
  compare(
      bench, "tokens/s", "schema", [&](int64_t pair) { return rate(pair, true); }, "free",
      [&](int64_t pair) { return rate(pair, false); });
  const auto metrics = engine->metrics();
  std::printf("  a mask takes %.1f us on average, %.1f us at most in 99 %%\n", 1e6 * metrics.mask_seconds.mean(),
              1e6 * metrics.mask_seconds.quantile(0.99));
}

// Of the whole process, all threads together.
double process_cpu_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

void adapters(const Bench& bench) {
  constexpr int64_t count = 8;
  Scratch scratch;
  const auto engine = bench.shape.engine(uncached);
  for (int64_t i = 0; i < count; ++i) {
    models::LoadOptions options;
    options.dtype = models::dtype_setting("bf16", "dtype");
    models::AdapterOptions adapter;
    config::read(parse_yaml("{r: 16, alpha: 32, init: random, target_modules: all-linear}"), adapter.config, "lora")
        .throw_if_any();
    adapter.seed = uint64_t(i);
    options.adapters = {adapter};
    const auto made = load_model(bench.shape.folder(), options);
    const std::string name = "adapter" + std::to_string(i);
    models::save_adapter(*made, *made->adapters().front(), scratch / name, "base");
    engine->load_adapter(name, scratch / name);
  }
  std::map<std::pair<int64_t, int64_t>, double> cpu;  // of a token, in microseconds
  const auto rate = [&](int64_t pair, int64_t mixed) {
    const double before = process_cpu_seconds();
    const Load load = bench.load(*engine, bench.most_clients(), pair, [&](esurge::Request& request, int64_t client) {
      if (mixed > 0) request.sampling.adapter = "adapter" + std::to_string(client % mixed);
    });
    cpu[{pair, mixed}] = 1e6 * (process_cpu_seconds() - before) / double(load.tokens);
    return load.rate();
  };
  rate(98, 0), rate(99, count);
  for (const int64_t mixed : {int64_t(1), count}) {
    std::printf("  %lld of rank 16:\n", static_cast<long long>(mixed));
    compare(
        bench, "tokens/s", "adapters", [&](int64_t pair) { return rate(pair, mixed); }, "base",
        [&](int64_t pair) { return rate(pair, 0); });
    compare(
        bench, "us of CPU a token", "adapters",
        [&](int64_t pair) {
          return cpu.at({pair, mixed});
        },
        "base",
        [&](int64_t pair) {
          return cpu.at({pair, 0});
        });
  }
}

void overlap(const Bench& bench) {
  const auto engine_with = [&](const char* overlaps) {
    std::vector<std::string> keys = {"enable_prefix_caching=false", str("overlap_execution=", overlaps)};
    if (bench.model.empty()) return bench.shape.engine(keys);
    Value document = Value::map(), model = Value::map();
    model.set("name_or_path", Value::text(bench.model));
    document.set("model", model);
    std::vector<std::string> all = bench.settings;
    for (const std::string& key : keys) all.push_back("esurge." + key);
    return elarge::core().open(elarge::configuration(document, all), false)->build_esurge();
  };
  const auto overlapped = engine_with("true"), in_turn = engine_with("false");
  for (const int64_t clients : bench.clients) {
    std::printf("  %lld clients:\n", static_cast<long long>(clients));
    std::map<std::pair<const esurge::Engine*, int64_t>, double> cpu;  // of a token, in microseconds
    const auto rate = [&](esurge::Engine& engine, int64_t pair) {
      const double before = process_cpu_seconds();
      const Load load = bench.load(engine, clients, pair);
      cpu[{&engine, pair}] = 1e6 * (process_cpu_seconds() - before) / double(load.tokens);
      return load.rate();
    };
    rate(*overlapped, 99), rate(*in_turn, 99);
    compare(
        bench, "tokens/s", "overlapped", [&](int64_t pair) { return rate(*overlapped, pair); }, "in turn",
        [&](int64_t pair) { return rate(*in_turn, pair); });
    compare(
        bench, "us of CPU a token", "overlapped",
        [&](int64_t pair) {
          return cpu.at({overlapped.get(), pair});
        },
        "in turn",
        [&](int64_t pair) {
          return cpu.at({in_turn.get(), pair});
        });
  }
}

double status_mebibytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::stod(line.substr(field.size() + 1)) / 1024;
  return 0;
}

void memory(const Bench& bench) {
  const auto engine = bench.shape.engine(uncached);
  std::atomic<bool> done = false;
  int64_t pages = 0;
  std::thread watch([&] {
    while (!done) {
      pages = std::max(pages, engine->metrics().cache_bytes_used);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  bench.load(*engine, bench.most_clients(), 3);
  done = true;
  watch.join();
  const double weights = 2 * smol_parameters / (1 << 20), used = double(pages) / (1 << 20);
  for (const char* field : {"VmRSS:", "VmHWM:"}) {
    const double resident = status_mebibytes(field);
    std::printf("  %s %.0f MiB; weights %.0f, pages %.0f, 143 (150 MB): ratio %.3f\n", field, resident, weights, used,
                resident / (weights + used + 150e6 / (1 << 20)));
  }
}

const std::map<std::string, void (*)(const Bench&)> rows = {
    {"load", load},     {"batch", batch},     {"first", first},     {"step", step},     {"long", long_prompt},
    {"cached", cached}, {"pool", pool},       {"lookup", lookup},   {"schema", schema}, {"adapters", adapters},
    {"memory", memory}, {"overlap", overlap}, {"outside", outside},
};

int main_of(int count, char** values) {
  const auto given = [&](const char* name, const char* otherwise) { return argument(count, values, name, otherwise); };
  std::vector<std::string> chosen, set = {"loader.dtype=bf16", "esurge.silent_mode=true"};
  for (int i = 1; i < count; ++i) {
    const std::string word = values[i];
    if (word == "--set") set.emplace_back(values[i + 1]);
    if (word.starts_with("--"))
      ++i;
    else
      check(rows.contains(word), "no row '", word, "'"), chosen.push_back(word);
  }
  if (chosen.empty()) chosen = {"load"};
  const ServedShape shape(given("tokenizer", ""), set);
  Bench bench{std::stoi(given("prompt", "265")),
              std::stoi(given("new", "64")),
              std::stoi(given("rounds", "2")),
              std::stoi(given("pairs", "3")),
              {},
              given("peer", ""),
              given("model", ""),
              set,
              shape};
  std::istringstream list(given("clients", "32,8,1"));
  for (std::string clients; std::getline(list, clients, ',');) bench.clients.push_back(std::stoi(clients));
  for (const std::string& row : chosen) {
    std::printf("%s\n", row.c_str());
    rows.at(row)(bench);
  }
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  easydel::log::set_level(easydel::log::Level::warning);
  return easydel::bench::main_of(count, values);
}
