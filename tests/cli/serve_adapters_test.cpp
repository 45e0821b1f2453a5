// The routes of adapters over the engine: answers are those of `easydel generate` with the adapter.
#include <atomic>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "cli/serve_process.h"
#include "cli/story_adapter.h"
#include "easydel/base/document.h"

namespace easydel {
namespace {

using test::RawClient;
using test::ServeProcess;

class ServedAdapters : public testing::Test {
 protected:
  std::string adapters() const {
    test::write_story_adapter(work_ / "all/loud", 0.8f);
    test::write_story_adapter(work_ / "all/soft", 1.5f);
    return (work_ / "all").string();
  }
  std::string generated(const std::string& adapter) const {
    std::vector<std::string> command = {"generate", test::story_model(), "-p", "Once upon a time", "-n", "16", "-t",
                                        "0",        "--no-echo"};
    if (!adapter.empty()) command.insert(command.end(), {"--adapter", (work_ / "all" / adapter).string()});
    const test::Ran ran = test::run_program(command);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  }
  // The whole response to a POST, or the text of a completion by `model`.
  std::string sent(const std::string& path, const std::string& body) const {
    return RawClient(port_, test::posted(path, body)).response();
  }
  std::string loaded(const std::string& name, const std::string& path, const std::string& more = "") const {
    return sent("/v1/load_lora_adapter",
                R"({"lora_name": ")" + name + R"(", "lora_path": ")" + path + "\"" + more + "}");
  }
  std::string completion(const std::string& model) const {
    const std::string response =
        sent("/v1/completions", R"({"prompt": "Once upon a time", "temperature": 0, "model": ")" + model + "\"}");
    const Value answer = parse_json(test::body_of(response));
    return answer.find("choices") ? answer.find("choices")->items[0].find("text")->scalar + "\n" : response;
  }

  test::TemporaryFolder work_;
  const ServeProcess server_{{"serve", test::story_model(), "--port", "0", "--adapters-dir", adapters()}};
  const int64_t port_ = server_.is_ready() ? server_.port() : 0;
};

TEST_F(ServedAdapters, AnswerAsGenerateWithTheAdapterDoes) {
  const std::string base = "stories260K-chat", plain = generated(""), loud = generated("loud"),
                    soft = generated("soft");
  EXPECT_EQ((std::set<std::string>{plain, loud, soft}.size()), 3u);
  EXPECT_TRUE(loaded("one", "loud").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(loaded("two", "soft").starts_with("HTTP/1.1 200"));
  EXPECT_EQ(completion(base), plain);
  EXPECT_EQ(completion("one"), loud);
  EXPECT_EQ(completion("two"), soft);
  EXPECT_TRUE(loaded("one", "soft", R"(, "load_inplace": true)").starts_with("HTTP/1.1 200"));
  EXPECT_EQ(completion("one"), soft);
  EXPECT_TRUE(sent("/v1/unload_lora_adapter", R"({"lora_name": "one"})").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(completion("one").starts_with("HTTP/1.1 404"));
  EXPECT_EQ(completion("two"), soft);
}

TEST_F(ServedAdapters, AreReplacedWhileTheyAnswer) {
  const std::string loud = generated("loud"), soft = generated("soft");
  ASSERT_TRUE(loaded("one", "loud").starts_with("HTTP/1.1 200"));
  std::atomic<int> others = 0, of_loud = 0, of_soft = 0;
  {
    std::vector<std::jthread> clients;
    for (int client = 0; client < 8; ++client)
      clients.emplace_back([&] {
        for (int i = 0; i < 10; ++i) {
          const std::string text = completion("one");
          ++(text == loud ? of_loud : text == soft ? of_soft : others);
        }
      });
    for (int i = 0; i < 12; ++i)
      EXPECT_TRUE(loaded("one", i % 2 ? "loud" : "soft", R"(, "load_inplace": true)").starts_with("HTTP/1.1 200"));
  }
  EXPECT_EQ(others, 0);  // each answer is wholly of one version
  EXPECT_EQ(of_loud + of_soft, 80);
}

}  // namespace
}  // namespace easydel
