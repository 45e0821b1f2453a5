// How a request's prompt and number of answers reach the engine: text before a suffix, equal answers.
#include <gtest/gtest.h>

#include <mutex>

#include "easydel/base/files.h"
#include "easydel/server/fill_in_middle.h"
#include "server/fake_engine.h"
#include "support/data.h"

namespace easydel::server {
namespace {

using test::FakeServer;
using test::Reply;

// The requests that an engine got.
struct Seen {
  std::mutex mutex;
  std::vector<esurge::Request> requests;

  test::FakeEngine::Answer answer() {
    return [this](const esurge::Request& request, int64_t choice) {
      const std::lock_guard lock(mutex);
      requests.push_back(request);
      return test::random_answer(request, choice);
    };
  }
};

TEST(EqualAnswers, AreComputedOnce) {
  Seen seen;
  FakeServer server(seen.answer());
  for (const bool chat : {true, false}) {
    const std::string prompt = chat ? R"("messages": [{"role": "user", "content": "a"}])" : R"("prompt": "a")";
    const std::string path = chat ? "/v1/chat/completions" : "/v1/completions";
    const auto ask = [&](const std::string& more) {
      return server.post(path, "{" + prompt + ", \"temperature\": 0" + more + "}");
    };
    const Value one = ask("").json(), three = ask(R"(, "n": 3)").json();
    ASSERT_EQ(three.find("choices")->items.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      Value choice = three.find("choices")->items[i];
      EXPECT_EQ(choice.find("index")->as_int(), int64_t(i));
      choice.set("index", Value::integer(0));
      EXPECT_EQ(to_json(choice), to_json(one.find("choices")->items[0]));
    }
    const auto tokens = [](const Value& answer) { return *answer.find("usage")->find("completion_tokens")->as_int(); };
    EXPECT_EQ(tokens(three), 3 * tokens(one));
    EXPECT_EQ(ask(R"(, "best_of": 4)").status, 200);
    // A stream has the pieces of all three.
    std::string texts[3];
    for (const Value& event : ask(R"(, "n": 3, "stream": true)").events())
      for (const Value& choice : event.find("choices")->items) {
        const Value* const text = chat ? choice.find("delta")->find("content") : choice.find("text");
        if (text) texts[size_t(*choice.find("index")->as_int())] += text->scalar;
      }
    const Value& whole = one.find("choices")->items[0];
    for (const std::string& text : texts)
      EXPECT_EQ(text, (chat ? whole.find("message")->find("content") : whole.find("text"))->scalar);
  }
  for (const esurge::Request& request : seen.requests) {
    EXPECT_EQ(request.sampling.n, 1);
    EXPECT_FALSE(request.sampling.best_of);
  }
}

// The story model's tokenizer with more special tokens.
std::shared_ptr<const text::Tokenizer> tokenizer_with(const std::vector<std::string>& names) {
  const test::TemporaryFolder folder;
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    test::write_file(folder / file, test::read_file(test::test_data("models/stories260K-chat") / file));
  Value document = parse_json(test::read_file(folder / "tokenizer.json"));
  int64_t id = 512;  // after those of the model
  for (const std::string& name : names) {
    Value token = document.find("added_tokens")->items.front();
    token.set("id", Value::integer(id++));
    token.set("content", Value::text(name));
    document.find("added_tokens")->items.push_back(std::move(token));
  }
  test::write_file(folder / "tokenizer.json", to_json(document));
  return text::Tokenizer::load(folder.path());
}

std::vector<text::TokenId> ids_of(const std::string& text) {
  return test::story_tokenizer()->encode(text, {.add_special_tokens = false});
}

TEST(Suffixes, StandWhereTheModelLearnedThem) {
  const auto prompts = [](const std::vector<std::string>& names) {
    Seen seen;
    FakeServer server(seen.answer(), {}, [&](ServedModel& model) { model.tokenizer = tokenizer_with(names); });
    const Reply reply =
        server.post("/v1/completions", R"({"prompt": "The old", "suffix": " went home.", "max_tokens": 3})");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_FALSE(seen.requests.at(0).sampling.stop_token_ids.empty());
    return std::get<std::vector<text::TokenId>>(seen.requests.at(0).prompt);
  };
  const auto joined = [](std::vector<std::vector<text::TokenId>> parts) {
    std::vector<text::TokenId> out;
    for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
  };
  const auto before = ids_of("The old"), after = ids_of(" went home.");
  const std::vector<text::TokenId> bos = {1};
  EXPECT_EQ(prompts({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}),
            joined({bos, {512}, before, {513}, after, {514}}));
  EXPECT_EQ(prompts({"<｜fim▁end｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>"}),
            joined({bos, {513}, before, {514}, after, {512}}));
  EXPECT_EQ(prompts({"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"}),
            joined({bos, {513}, after, {512}, before, {514}}));
  EXPECT_EQ(prompts({"[PREFIX]", "[SUFFIX]"}), joined({bos, {513}, after, {512}, before}));
}

TEST(Suffixes, AreRefusedWhereTheyCannotBe) {
  const auto refusal = [](const FakeServer& server, const std::string& body) {
    const Reply reply = server.post("/v1/completions", body);
    EXPECT_EQ(reply.status, 400);
    return reply.error("message");
  };
  FakeServer plain;
  EXPECT_EQ(refusal(plain, R"({"prompt": "a", "suffix": "b"})"),
            "suffix: the tokenizer has no tokens for filling in the middle (leave it out)");
  FakeServer filling(test::random_answer, {}, [](ServedModel& model) {
    model.tokenizer = tokenizer_with({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  });
  EXPECT_EQ(refusal(filling, R"({"prompt": "a", "suffix": "b", "echo": true})"),
            "echo: is given together with suffix (leave one of them out)");
  std::string words;
  for (int i = 0; i < 600; ++i) words += " home";
  EXPECT_NE(refusal(filling, R"({"prompt": "a", "suffix": ")" + words + "\"}").find("than fit into the context"),
            std::string::npos);
}

}  // namespace
}  // namespace easydel::server
