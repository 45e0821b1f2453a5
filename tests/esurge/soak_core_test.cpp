// The engine under load from several threads, with a pool that is too small: no request is lost, every answer that was
// not cut short is the right one, and no page stays behind. EASYDEL_SOAK_SECONDS=3600 makes it last longer.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "easydel/base/clock.h"
#include "easydel/base/log.h"
#include "easydel/esurge/engine.h"
#include "easydel/models/adapter.h"
#include "easydel/models/model.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

constexpr int64_t kinds = 24;

Request request_of(int64_t kind) {
  std::mt19937_64 random(static_cast<uint64_t>(kind));
  const auto from = [&](int64_t low, int64_t high) { return low + int64_t(random() % uint64_t(high - low + 1)); };
  Request request;
  std::vector<TokenId> prompt = {1, 403, 407, 261, 378, 29};
  prompt.resize(size_t(from(1, 6)));
  for (int64_t i = from(0, 50); i > 0; --i) prompt.push_back(TokenId(from(3, 511)));
  request.prompt = prompt;
  request.sampling.temperature = kind % 2 ? 0.8 : 0;
  request.sampling.seed = kind;
  request.sampling.n = kind % 6 == 1 ? 3 : 1;
  request.sampling.max_tokens = from(1, 60);
  if (kind % 5 == 0) request.sampling.priority = from(0, 3);
  if (kind % 4 == 3) request.sampling.adapter = kind % 8 == 3 ? "one" : "two";
  return request;
}

// Adapters with random weights, in folders of these names.
void write_adapters(const test::fs::path& model, const test::TemporaryFolder& folder) {
  for (const auto& [name, seed] : {std::pair{"one", 1}, std::pair{"two", 2}}) {
    models::LoadOptions options;
    models::AdapterOptions adapter;
    config::read(parse_yaml("{r: 3, alpha: 8, init: random}"), adapter.config, "lora").throw_if_any();
    adapter.seed = uint64_t(seed);
    options.adapters = {adapter};
    const auto made = models::load_model(model, options);
    models::save_adapter(*made, *made->adapters().front(), folder / name, "base");
  }
}

std::string text_of(const RequestOutput& output) {
  std::string text;
  for (const CompletionOutput& one : output.outputs) text += one.text + "|";
  return text;
}

double resident_mib() {
  int64_t all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return double(pages) / 256;
}

TEST(Soak, LosesNoRequestAndNoPage) {
  log::set_level(log::Level::warning);
  const char* const asked = std::getenv("EASYDEL_SOAK_SECONDS");
  const double seconds = asked ? std::atof(asked) : 60;
  const test::TemporaryFolder adapters;
  const auto folder = test::test_data("models/stories260K-hf");
  EngineSetup setup;
  setup.model = models::load_model(folder, {});
  setup.tokenizer = text::Tokenizer::load(folder);
  setup.config.max_model_len = 128;
  setup.config.max_num_batched_tokens = 64;
  setup.config.max_num_seqs = 12;
  setup.config.page_size = 16;
  setup.config.scheduling_policy = SchedulingPolicy::priority;
  setup.config.num_speculative_tokens = 3;
  setup.pages = 30;
  write_adapters(folder, adapters);
  const auto load = [&](Engine& engine) {
    for (const char* name : {"one", "two"}) engine.load_adapter(name, adapters / name);
  };
  std::vector<std::string> expected;
  {
    Engine alone(setup);
    load(alone);
    for (int64_t kind = 0; kind < kinds; ++kind) expected.push_back(text_of(alone.generate(request_of(kind))));
  }
  Engine engine(setup);
  load(engine);
  std::atomic<int64_t> count = 0, whole = 0, cut = 0, adapted = 0;
  const Clock::time_point began = Clock::now();
  std::vector<std::thread> clients;
  for (int thread = 0; thread < 6; ++thread)
    clients.emplace_back([&, thread] {
      std::mt19937_64 random(uint64_t(thread) + 99);
      while (seconds_since(began) < seconds) {
        ++count;
        const auto kind = int64_t(random() % kinds);
        Request request = request_of(kind);
        request.sampling.output_kind = random() % 2 ? OutputKind::delta : OutputKind::cumulative;
        if (random() % 10 == 0) request.sampling.timeout_seconds = 0.001;
        const int64_t leaves_after = random() % 8 == 0 ? int64_t(random() % 5) : -1;
        if (random() % 50 == 0) engine.pause(), engine.resume();
        // Another version of the same weights.
        if (const char* name = random() % 2 ? "one" : "two"; random() % 200 == 0)
          engine.load_adapter(name, adapters / name, true);
        int64_t pieces = 0;
        std::string text;
        const RequestOutput end = engine.stream(request, [&](const RequestOutput& output) {
          for (const CompletionOutput& one : output.outputs) text += one.delta_text;
          return pieces++ != leaves_after;  // whoever has left gets no more pieces
        });
        EXPECT_EQ(end.error, "");
        bool complete = true;
        std::string all;
        for (const CompletionOutput& one : end.outputs) {
          complete &= one.finish_reason != FinishReason::abort;
          all += one.accumulated_text + "|";
        }
        adapted += complete && request.sampling.adapter;
        if (complete) {
          EXPECT_EQ(all, expected[size_t(kind)]) << kind;
          if (end.outputs.size() == 1 && (leaves_after < 0 || pieces <= leaves_after)) {
            EXPECT_EQ(text + "|", all);
          }
        }
        ++(complete ? whole : cut);
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(whole + cut, count);
  EXPECT_GT(whole, count / 2);
  EXPECT_GT(cut, 0);
  EXPECT_GT(adapted, 0);
  engine.pause();  // gives up all pages
  const EngineMetrics metrics = engine.metrics();
  log::set_level(log::Level::info);
  std::printf("%lld requests in %.0f s, %lld ended early, %lld preemptions, %.1f MiB resident\n",
              static_cast<long long>(count), seconds, static_cast<long long>(cut),
              static_cast<long long>(metrics.preemptions), resident_mib());
  EXPECT_EQ(metrics.running_requests + metrics.waiting_requests, 0);
  EXPECT_EQ(metrics.cache_pages_used, 0);
  EXPECT_GT(metrics.preemptions, 0);
  EXPECT_GT(metrics.draft_tokens, 0);
  EXPECT_EQ(metrics.requests_finished + metrics.requests_aborted, count);
}

}  // namespace
}  // namespace easydel::esurge
