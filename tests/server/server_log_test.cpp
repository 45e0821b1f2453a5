// What the server writes into its log besides what every request has: prompts where they are asked for, and how the
// level is changed while it runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "easydel/base/log.h"
#include "easydel/server/server.h"
#include "server/fake_engine.h"

namespace easydel::server {
namespace {

using test::FakeServer;

// The log lines of three requests to a server with or without log_prompts.
std::string logged(bool log_prompts) {
  std::mutex mutex;
  std::string out;
  FakeServer server(test::random_answer, [&](ServeConfig& config) { config.log_prompts = log_prompts; });
  log::set_sink([&](log::Level, std::string_view line) {
    const std::lock_guard lock(mutex);
    out += str(line, "\n");
  });
  server.post("/v1/completions", R"({"prompt": ["The\nold", "mother"], "max_tokens": 1})");
  server.post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "secret \u001b[0m"}]})");
  server.post("/v1/completions", R"({"prompt": 5})");
  server.http = nullptr;
  const std::lock_guard lock(mutex);
  return out;
}

TEST(ServerLog, HasPromptsOnlyWhereTheyAreAskedFor) {
  const std::string without = logged(false), with = logged(true);
  EXPECT_EQ(without.find("prompt="), std::string::npos) << without;
  EXPECT_EQ(without.find("secret"), std::string::npos) << without;
  // As the model sees them, on one line.
  EXPECT_NE(with.find(R"( prompt="<s> The\nold\n<s> mother")"), std::string::npos) << with;
  EXPECT_NE(with.find("secret \\u001b[0m"), std::string::npos) << with;
  EXPECT_EQ(std::ranges::count(with, '\n'), 3) << with;
}

// Equal answers are computed once, an echo needs a token that no answer has, and what was computed for clients that
// leave counts too.
TEST(ServerLog, AddsUpToWhatTheEngineComputed) {
  std::mutex mutex;
  std::vector<std::string> lines;
  FakeServer server;
  log::set_sink([&](log::Level, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  });
  const auto ended = [&](size_t count) {
    return test::eventually([&] {
      const std::lock_guard lock(mutex);
      return lines.size() == count;
    });
  };
  server.post("/v1/completions", R"({"prompt": ["a", "b"], "n": 3, "temperature": 0})");
  server.post("/v1/completions", R"({"prompt": "a", "max_tokens": 0, "echo": true})");
  server.post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Hi"}], "stream": true, "n": 2})");
  ASSERT_TRUE(ended(3));
  server.engine->hold();
  for (const char* stream : {"false", "true"}) {
    test::RawClient client(server.http->port());
    client.send(FakeServer::posted("/v1/completions", str(R"({"prompt": "a", "n": 2, "stream": )", stream, "}")));
    ASSERT_TRUE(test::eventually([&] { return server.jobs.count() == 1; }));
    client.reset();
    ASSERT_TRUE(test::eventually([&] { return server.jobs.count() == 0; }));
  }
  server.engine->release();
  ASSERT_TRUE(ended(5));
  int64_t sum = 0, gone = 0;
  for (const std::string& line : lines) {
    const std::string mark = " generated_tokens=";
    const size_t at = line.find(mark);
    ASSERT_NE(at, std::string::npos) << line;
    sum += std::stoll(line.substr(at + mark.size()));
    gone += line.find("finish_reason=abort") != std::string::npos;
  }
  EXPECT_EQ(sum, server.engine->generated());
  EXPECT_EQ(gone, 2);
}

TEST(ServerLog, CutsLongPrompts) {
  AnswerJobs jobs({.log_prompts = true});
  FakeServer server;
  // The limit is inside of a character.
  std::string long_text = "a";
  for (int i = 0; i < 10000; ++i) long_text += "ü the ";
  const std::vector<text::TokenId> ids = test::story_tokenizer()->encode(long_text, {.add_special_tokens = false});
  std::string prompt;
  server.api.serve("GET /props", [&](std::shared_ptr<Call> call) {
    jobs.note_prompt(*call, *server.models.find(std::nullopt), ids);
    prompt = call->record.prompt;
    call->respond_json(200, "{}");
  });
  EXPECT_EQ(server.get("/props").status, 200);
  EXPECT_EQ(prompt, long_text.substr(0, 65535));
}

TEST(ServerLog, ChangesItsLevelWhenItReloads) {
  ServeConfig config;
  config.host = "127.0.0.1";
  config.port = 0;
  Server server(config);
  server.start();
  server.reload();  // nothing says another level
  EXPECT_FALSE(log::enabled(log::Level::debug));
  LogLevel level = LogLevel::debug;
  server.reload_from([&] {
    if (level == LogLevel::error) refuse("actions[0].serve.log_level", "is broken");
    ServeConfig out;
    out.log_level = level;
    return out;
  });
  server.reload();
  EXPECT_TRUE(log::enabled(log::Level::debug));
  level = LogLevel::warning;
  server.reload();
  EXPECT_FALSE(log::enabled(log::Level::info));
  level = LogLevel::error;  // a file that cannot be read
  server.reload();
  EXPECT_TRUE(log::enabled(log::Level::warning));
  log::set_level(log::Level::info);
}

}  // namespace
}  // namespace easydel::server
