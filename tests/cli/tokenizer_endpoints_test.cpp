// The engine with tokenizers in a process of their own, by the program.
#include <csignal>

#include <gtest/gtest.h>

#include "cli/serve_process.h"
#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "server/client.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::body_of;
using test::posted;
using test::RawClient;
using test::ServeProcess;
using test::story_model;

// `easydel tokenize MODEL --serve ADDRESS`, once it listens.
class TokenizeProcess {
 public:
  explicit TokenizeProcess(const std::string& address) : process_({"tokenize", story_model(), "--serve", address}) {
    EXPECT_TRUE(test::eventually([&] { return process_.out().starts_with("tokenizes at "); })) << process_.log();
  }
  std::string address() const { return process_.out().substr(13, process_.out().size() - 14); }
  void stop() { process_.signal(SIGSTOP); }
  int end(int signal) {
    process_.signal(signal);
    return process_.wait();
  }

 private:
  ServeProcess process_;
};

std::vector<std::string> with_endpoints(std::vector<std::string> words, const std::string& address) {
  for (const char* key : {"tokenizer_endpoint", "detokenizer_endpoint"})
    words.insert(words.end(), {"--set", str("esurge.", key, "=", address)});
  return words;
}

TEST(TokenizerEndpoints, LeaveWhatTheEngineAnswersAsItIs) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "lines.jsonl", R"({"prompt": "Once upon a time", "sampling": {"seed": 1, "max_tokens": 20}}
{"messages": [{"role": "user", "content": "Hi <s> there"}], "sampling": {"seed": 2, "max_tokens": 40, "stop": ["e w"]}}
{"prompt": "\u4f60\u597d", "sampling": {"n": 2, "temperature": 1.5, "seed": 3, "max_tokens": 20, "bad_words": ["the"]}}
)");
  const std::vector<std::string> words = {"probe", "engine", story_model(), "--jsonl",
                                          (folder / "lines.jsonl").string()};
  const test::Ran alone = test::run_program(words);
  ASSERT_EQ(alone.status, 0) << alone.err;
  for (const std::string& address : {str("unix:", (folder / "socket").string()), std::string("tcp://127.0.0.1:0")}) {
    TokenizeProcess worker(address);
    const test::Ran ran = test::run_program(with_endpoints(words, worker.address()));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, alone.out);
    EXPECT_EQ(worker.end(address.starts_with("unix") ? SIGINT : SIGTERM), 0);
  }
  EXPECT_FALSE(test::fs::exists(folder / "socket"));
}

std::string completion(const ServeProcess& server, const std::string& prompt) {
  return RawClient(server.port(), posted("/v1/completions", str(R"({"temperature": 0, "prompt": )", prompt, "}")))
      .response();
}

TEST(TokenizerEndpoints, LetTheServerGoOnWithoutTheirProcess) {
  const test::TemporaryFolder folder;
  const std::string address = str("unix:", (folder / "socket").string());
  TokenizeProcess first(address);
  ServeProcess server(with_endpoints({"serve", story_model(), "--port", "0"}, address));
  ASSERT_TRUE(server.is_ready()) << server.log();
  const std::string text = completion(server, "\"Once upon a time\"");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 ")) << text;
  const auto error_of = [](const std::string& response) {
    return to_json(*parse_json(body_of(response)).find("error"));
  };
  const std::string lost =
      R"({"message": "The tokenizer of the server does not answer.", "type": "server_error", "param": null, )"
      R"("code": "tokenizer_lost"})";

  EXPECT_EQ(first.end(SIGKILL), 128 + SIGKILL);
  EXPECT_EQ(error_of(completion(server, "\"Once upon a time\"")), lost);
  EXPECT_NE(server.log().find(str("esurge.tokenizer_endpoint: the tokenizer at ", address)), std::string::npos)
      << server.log();

  TokenizeProcess second(address);
  const auto choices_of = [](const std::string& response) {
    return to_json(*parse_json(body_of(response)).find("choices"));
  };
  EXPECT_EQ(choices_of(completion(server, "\"Once upon a time\"")), choices_of(text));

  // A process that hangs in the middle of an answer.
  RawClient stream(server.port(), posted("/v1/completions", R"({"prompt": "Once", "max_tokens": 400, "ignore_eos": true,
      "temperature": 0, "stream": true})"));
  stream.until("\r\n\r\n");
  second.stop();
  EXPECT_NE(stream.chunks().find("\"error\""), std::string::npos);
  EXPECT_EQ(error_of(completion(server, "[1, 403]")), lost);
  second.end(SIGKILL);

  TokenizeProcess third(address);
  EXPECT_TRUE(
      test::eventually([&] { return completion(server, "\"Once upon a time\"").starts_with("HTTP/1.1 200 "); }));
  EXPECT_EQ(choices_of(completion(server, "\"Once upon a time\"")), choices_of(text));
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.log();
}

}  // namespace
}  // namespace easydel
