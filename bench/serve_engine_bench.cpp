// The engine under load on SmolLM2-135M's shape, in one process: serve_engine_bench [--clients 32,8,1] [--prompt 265]
// [--new 64] [--rounds 2] [--set KEY=VALUE]. Each client asks again as soon as it has its answer, `rounds` times.
// Afterwards one request at a time through the Generator, for the ratio of one client to it.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <sstream>
#include <thread>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/overrides.h"
#include "easydel/esurge/engine.h"
#include "measure.h"

namespace easydel::bench {
namespace {

constexpr int vocabulary = 512;  // ids of the story tokenizer

std::vector<text::TokenId> prompt_of(int client, int round, int tokens) {
  std::vector<text::TokenId> ids;
  for (int i = 0; i < tokens; ++i)
    ids.push_back(3 + (client * 131 + round * 977 + i * 31 + i * i % 7) % (vocabulary - 3));
  return ids;
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[std::min(values.size() - 1, size_t(share * double(values.size())))];
}

// Output tokens a second.
double serve(esurge::Engine& engine, int clients, int prompt, int fresh, int rounds) {
  std::mutex mutex;
  std::vector<double> first;
  std::atomic<int64_t> tokens = 0;
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      for (int round = 0; round < rounds; ++round) {
        esurge::Request request;
        request.prompt = prompt_of(client, round, prompt);
        request.sampling.temperature = 0;
        request.sampling.max_tokens = fresh;
        request.sampling.ignore_eos = true;
        const esurge::RequestOutput output = engine.generate(request);
        check(output.error.empty(), output.error);
        tokens += output.num_generated_tokens;
        const std::lock_guard lock(mutex);
        first.push_back(*output.first_token_time);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const double rate = double(tokens) / seconds_since(begin);
  std::printf("%d clients: %.1f output tokens/s; first token after %.3f s (p50), %.3f s (p99)\n", clients, rate,
              quantile(first, 0.5), quantile(first, 0.99));
  return rate;
}

int main_of(int count, char** values) {
  const int prompt = std::stoi(argument(count, values, "prompt", "265"));
  const int fresh = std::stoi(argument(count, values, "new", "64"));
  const int rounds = std::stoi(argument(count, values, "rounds", "2"));
  Scratch scratch;
  Value document = Value::map(), model = Value::map();
  model.set("name_or_path", Value::text(smol_shape(scratch / "smol135m").string()));
  document.set("model", model);
  std::vector<std::string> set = {"loader.dtype=bf16", "esurge.max_model_len=2048",
                                  "esurge.enable_prefix_caching=false"};
  if (const std::string own = argument(count, values, "set", ""); !own.empty()) set.push_back(own);
  const auto session = elarge::core().open(elarge::configuration(document, set), false);
  const auto engine = session->build_esurge();
  serve(*engine, 1, prompt, 4, 1);  // packs the weights
  double alone = 0;
  std::istringstream list(argument(count, values, "clients", "32,8,1"));
  for (std::string clients; std::getline(list, clients, ',');)
    alone = serve(*engine, std::stoi(clients), prompt, fresh, std::stoi(clients) == 1 ? 2 * rounds : rounds);
  const esurge::EngineMetrics metrics = engine->metrics();
  std::printf("%lld steps of %.1f tokens, %.2f ms on average\n", static_cast<long long>(metrics.steps),
              metrics.step_tokens.mean(), 1e3 * metrics.step_seconds.mean());

  elarge::GenerateRequest request;
  request.batch = 1;
  for (int i = 0; i < 2 * rounds; ++i) {
    std::string words;
    for (int t = 0; t < prompt; ++t) words += " the";
    request.prompts.push_back(words);
  }
  request.generation.set<&generation::GenerationConfig::max_new_tokens>(std::optional<int64_t>(fresh));
  request.generation.set<&generation::GenerationConfig::min_new_tokens>(int64_t(fresh));
  request.generation.set<&generation::GenerationConfig::do_sample>(false);
  int64_t tokens = 0;
  double seconds = 0;
  for (const elarge::Generated& one : session->generate(request)) {
    tokens += one.new_tokens;
    seconds += one.prefill_seconds + one.decode_seconds;
  }
  const double generator = double(tokens) / seconds;
  std::printf("generator, one at a time: %.1f output tokens/s; one client of the engine: %.2f of it\n", generator,
              alone / generator);
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  easydel::log::set_level(easydel::log::Level::warning);
  return easydel::bench::main_of(count, values);
}
