#include "engine_load.h"

#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <thread>

#include "easydel/base/clock.h"
#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/overrides.h"
#include "easydel/elarge/served_model.h"
#include "easydel/models/model.h"
#include "easydel/nn/weight.h"
#include "easydel/ops/attention.h"

namespace easydel::bench {
namespace fs = std::filesystem;
namespace {

elarge::Config configuration_of(const fs::path& folder, const std::vector<std::string>& set) {
  Value document = Value::map(), model = Value::map();
  model.set("name_or_path", Value::text(folder.string()));
  document.set("model", model);
  return elarge::configuration(document, set);
}

}  // namespace

ServedShape::ServedShape(const std::string& tokenizer, std::vector<std::string> set)
    : folder_(smol_shape(scratch_ / "smol135m")), set_(std::move(set)) {
  Value config = parse_json(files::read(folder_ / "config.json"));
  config.set("max_position_embeddings", Value::integer(32768));
  files::write(folder_ / "config.json", to_json(config));
  if (!tokenizer.empty())
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      files::write(folder_ / name, files::read(fs::path(tokenizer) / name));
  const auto session = elarge::core().open(configuration_of(folder_, set_), false);
  model_ = session->build_model();
  tokenizer_ = session->build_tokenizer();
}

std::shared_ptr<esurge::Engine> ServedShape::engine(const std::vector<std::string>& keys,
                                                    std::optional<int64_t> pages) const {
  std::vector<std::string> set = set_;
  for (const std::string& key : keys) set.push_back("esurge." + key);
  esurge::EngineSetup setup = elarge::engine_setup(model_, tokenizer_, configuration_of(folder_, set));
  setup.pages = pages;
  return std::make_shared<esurge::Engine>(std::move(setup));
}

std::vector<text::TokenId> prompt_ids(int64_t seed, int64_t tokens) {
  std::vector<text::TokenId> ids;
  uint64_t state = uint64_t(seed) * 0x9E3779B97F4A7C15u + 1;
  for (int64_t i = 0; i < tokens; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(text::TokenId(3 + (state >> 33) % 509));
  }
  return ids;
}

esurge::Request request_of(int64_t seed, int64_t tokens, int64_t fresh) {
  esurge::Request request;
  request.prompt = prompt_ids(seed, tokens);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = fresh;
  request.sampling.ignore_eos = true;
  return request;
}

Load serve(esurge::Engine& engine, int64_t clients, int64_t rounds,
           const std::function<esurge::Request(int64_t client, int64_t round)>& request) {
  Load all;
  std::mutex mutex;
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int64_t client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      Load own;
      for (int64_t round = 0; round < rounds; ++round) {
        esurge::Request asked = request(client, round);
        asked.sampling.output_kind = esurge::OutputKind::delta;
        auto last = Clock::now();
        bool begun = false;
        const esurge::RequestOutput output = engine.stream(std::move(asked), [&](const esurge::RequestOutput& each) {
          if (each.num_generated_tokens == 0) return true;
          (begun ? own.between : own.first).push_back(seconds_since(last));
          begun = true;
          last = Clock::now();
          return true;
        });
        check(output.error.empty(), output.error);
        own.tokens += output.num_generated_tokens;
      }
      const std::lock_guard lock(mutex);
      all.tokens += own.tokens;
      all.first.insert(all.first.end(), own.first.begin(), own.first.end());
      all.between.insert(all.between.end(), own.between.begin(), own.between.end());
    });
  for (std::thread& thread : threads) thread.join();
  all.seconds = seconds_since(begin);
  return all;
}

namespace {

struct PassParts {
  double products = 0, attention = 0, cpu = 0;  // seconds; cpu: of both, by all threads
};

// Of the whole process, all threads together.
double cpu_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

PassParts parts_of_prompt(const models::Model& model, int64_t tokens) {
  const c10::InferenceMode no_gradient;
  const auto random = [&](std::vector<int64_t> shape) { return at::randn(shape).to(model.compute_type()); };
  const auto number = [&](const char* key) { return model.config().find(key)->as_int().value(); };
  const int64_t heads = number("num_attention_heads"), kv_heads = number("num_key_value_heads"),
                size = number("hidden_size") / heads;
  PassParts out;
  nn::Pass pass = nn::Pass::over({0, tokens});
  std::map<int64_t, Tensor> inputs;  // by size
  for (const nn::Entry& entry : model.parameters().entries()) {
    if (!nn::is_linear(entry) || entry.head) continue;
    Tensor& x = inputs[entry.shape[1]];
    if (!x.defined()) x = random({tokens, entry.shape[1]});
    for (int warm = 0; warm < 2; ++warm) entry.weight->product(x.slice(0, 0, 1), {}, {}, pass);  // packs it
    const double cpu = cpu_seconds();
    const auto began = Clock::now();
    entry.weight->product(x, {}, {}, pass);
    out.products += seconds_since(began), out.cpu += cpu_seconds() - cpu;
  }
  const Tensor q = random({tokens, heads, size}), k = random({tokens, kv_heads, size}),
               v = random({tokens, kv_heads, size});
  const ops::AttentionRange all{0, tokens, 0, tokens};
  ops::AttentionCall call;
  call.sequences = {&all, 1};
  ops::AttentionSpec spec;
  spec.scale = 1 / std::sqrt(double(size));
  for (int64_t layer = 0; layer < number("num_hidden_layers"); ++layer) {
    const double cpu = cpu_seconds();
    const auto began = Clock::now();
    ops::attention(spec, call, q, k, v);
    out.attention += seconds_since(began), out.cpu += cpu_seconds() - cpu;
  }
  return out;
}

}  // namespace

void print_rest_of_prompts(const ServedShape& shape, int64_t pairs) {
  const auto engine =
      shape.engine({"enable_prefix_caching=false", "max_model_len=4096", "max_num_batched_tokens=4096"});
  for (const int64_t tokens : {128, 512, 2048}) {
    std::vector<double> whole, products, attention, shares, cpu_shares;
    for (int64_t pair = -1; pair < pairs; ++pair) {
      const double cpu_before = cpu_seconds();
      const double seconds = *engine->generate(request_of(pair * 77 + tokens, tokens, 1)).first_token_time;
      const double cpu_between = cpu_seconds();
      const PassParts parts = parts_of_prompt(*shape.model(), tokens);
      if (pair < 0) continue;
      cpu_shares.push_back(100 * (1 - parts.cpu / (cpu_between - cpu_before)));
      whole.push_back(1e3 * seconds), products.push_back(1e3 * parts.products);
      attention.push_back(1e3 * parts.attention);
      shares.push_back(100 * (1 - (parts.products + parts.attention) / seconds));
    }
    std::printf("  prompt of %lld tokens: %s ms, products %s, attention %s; the rest %s %%, of CPU time %s %%\n",
                static_cast<long long>(tokens), spread_of(whole, 1).c_str(), spread_of(products, 1).c_str(),
                spread_of(attention, 1).c_str(), spread_of(shares, 1).c_str(), spread_of(cpu_shares, 1).c_str());
  }
}

double plain_loop(const std::filesystem::path& folder, int64_t prompt_tokens, int64_t fresh, int64_t rounds) {
  const auto session = elarge::core().open(elarge::configuration(
                                               [&] {
                                                 Value document = Value::map(), model = Value::map();
                                                 model.set("name_or_path", Value::text(folder.string()));
                                                 document.set("model", model);
                                                 return document;
                                               }(),
                                               {"loader.dtype=bf16"}),
                                           false);
  elarge::GenerateRequest request;
  request.batch = 1;
  for (int64_t i = 0; i < 1 + rounds; ++i) {
    std::string words;
    for (int64_t t = 0; t < prompt_tokens; ++t) words += " the";
    request.prompts.push_back(words);
  }
  request.generation.set<&generation::GenerationConfig::max_new_tokens>(std::optional<int64_t>(fresh));
  request.generation.set<&generation::GenerationConfig::min_new_tokens>(int64_t(fresh));
  request.generation.set<&generation::GenerationConfig::do_sample>(false);
  int64_t tokens = 0;
  double seconds = 0;
  for (const elarge::Generated& one : session->generate(request)) {
    if (one.prompt == 0) continue;  // packs the weights
    tokens += one.new_tokens;
    seconds += one.prefill_seconds + one.decode_seconds;
  }
  return double(tokens) / seconds;
}

double decode_step(esurge::Engine& engine, int64_t sequences, int64_t context, int64_t steps, int64_t seed) {
  std::vector<esurge::Request> requests;
  for (int64_t i = 0; i < sequences; ++i) requests.push_back(request_of(seed + i, context, steps));
  // The one that began last decodes with all the others until they end.
  double least = INFINITY;
  for (const esurge::RequestOutput& output : engine.generate(std::move(requests))) {
    check(output.error.empty(), output.error);
    least = std::min(least, output.time_spent_generating);
  }
  return least / double(steps - 1);
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[std::min(values.size() - 1, size_t(share * double(values.size())))];
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string spread_of(const std::vector<double>& values, int digits) {
  char text[96];
  std::snprintf(text, sizeof text, "%.*f (%.*f to %.*f)", digits, median(values), digits,
                *std::ranges::min_element(values), digits, *std::ranges::max_element(values));
  return text;
}

}  // namespace easydel::bench
