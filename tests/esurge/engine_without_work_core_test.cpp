// An engine that nobody asks for anything, or that is paused: what it gives back, and what it still answers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <thread>

#include "easydel/esurge/engine.h"
#include "easydel/models/model.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

EngineSetup story() {
  static const auto folder = test::test_data("models/stories260K-hf");
  static const auto model = models::load_model(folder, {});
  static const auto tokenizer = text::Tokenizer::load(folder);
  EngineSetup setup;
  setup.model = model, setup.tokenizer = tokenizer;
  setup.config.max_model_len = 256;
  setup.config.max_num_batched_tokens = 256;
  setup.pages = 40;
  return setup;
}

Request request_of(std::string prompt, int64_t max_tokens = 12) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  return request;
}

TEST(EngineWithoutWork, EndsARequestAtItsDeadlineWhileItIsPaused) {
  EngineSetup setup = story();
  setup.config.idle_reset_seconds = 1e300;  // more than any clock counts
  Engine engine(setup);
  engine.pause();
  Request later = request_of("Tom");
  later.sampling.timeout_seconds = 1e300;
  std::promise<RequestOutput> never, promised;
  engine.add(later, [&](RequestOutput output) {
    if (output.finished) never.set_value(std::move(output));
  });
  Request soon = request_of("Tom");
  soon.sampling.timeout_seconds = 0.05;
  engine.add(soon, [&](RequestOutput output) {
    if (output.finished) promised.set_value(std::move(output));
  });
  std::future<RequestOutput> ended = promised.get_future(), other = never.get_future();
  const bool came = ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  EXPECT_TRUE(came);
  EXPECT_NE(other.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  engine.resume();
  const RequestOutput output = ended.get();
  EXPECT_TRUE(output.timed_out);
  EXPECT_EQ(output.outputs.at(0).finish_reason, FinishReason::abort);
  EXPECT_EQ(output.num_generated_tokens, 0);
  EXPECT_EQ(other.get().num_generated_tokens, 12);
}

// Bytes of this process that are in memory.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(EngineWithoutWork, GivesItsPagesToTheSystemWhenItIsPausedWithoutRequests) {
  for (const bool destroys : {true, false}) {
    EngineSetup setup = story();
    setup.config.max_model_len = setup.config.max_num_batched_tokens = 512;
    setup.config.destroy_pages_on_pause = destroys;
    setup.pages = 80;
    Engine engine(setup);
    for (TokenId first = 10; first < 26; ++first) {
      Request request = request_of("", 1);
      request.prompt = std::vector<TokenId>(500, first);
      EXPECT_EQ(engine.generate(request).error, "");
    }
    const int64_t before = resident_bytes(), bytes = engine.metrics().cache_bytes_used;
    ASSERT_GT(bytes, 8 << 20);
    engine.pause();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(destroys ? 30 : 0);
    while (before - resident_bytes() < bytes / 2 && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(before - resident_bytes() > bytes / 2, destroys);
    EXPECT_EQ(engine.metrics().cache_pages_used == 0, destroys);
  }
}

TEST(EngineWithoutWork, GivesItsMemoryBackOnceItIsIdle) {
  EngineSetup setup = story();
  setup.config.idle_reset_seconds = 0.02, setup.config.idle_reset_min_interval = 0;
  Engine engine(setup);
  const std::string text = engine.generate(request_of("Once upon a time")).outputs.at(0).text;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (engine.metrics().cache_resets == 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const EngineMetrics idle = engine.metrics();
  EXPECT_EQ(idle.cache_resets, 1) << "there is nothing more to give back";
  EXPECT_EQ(idle.cache_pages_used, 0);
  const RequestOutput again = engine.generate(request_of("Once upon a time"));
  EXPECT_EQ(again.cached_tokens, 0);
  EXPECT_EQ(again.outputs.at(0).text, text);
}

TEST(EngineWithoutWork, KnowsNoErrorOfAnAbortOfWhatItDoesNotHave) {
  Engine engine(story());
  engine.abort(12345);
  const RequestId id = engine.add(request_of("Tom"), [](const RequestOutput&) {});
  engine.drain();
  engine.abort(id);
  EXPECT_EQ(engine.metrics().requests_aborted, 0);
}

}  // namespace
}  // namespace easydel::esurge
