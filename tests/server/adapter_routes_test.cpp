// Adapters and the prefix cache by their routes, over a fake engine.
#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "server/fake_engine.h"
#include "support/data.h"

namespace easydel::test {
namespace {

// A folder of adapters, and a server that may load them.
struct AdapterServer {
  AdapterServer() {
    for (const char* name : {"all/one", "all/two", "all/linked", "other"}) files::make_directories(folder / name);
    for (const char* name : {"all/one", "all/two", "all/linked", "other"})
      files::write(folder / name / "adapter_config.json", "{}");
    files::make_directories(folder / "all/empty");
    files::link(folder / "other/adapter_config.json", folder / "all/linked/weights");
    files::link(folder / "other", folder / "all/out");
  }
  Reply load(const std::string& name, const std::string& path, const std::string& more = "") const {
    return server.post("/v1/load_lora_adapter",
                       R"({"lora_name": ")" + name + R"(", "lora_path": ")" + path + "\"" + more + "}");
  }
  std::string names(const char* path, const char* list, const char* key) const {
    std::string out;
    const Value document = server.get(path).json();
    for (const Value& one : document.find(list)->items) out += one.find(key)->scalar + " ";
    return out;
  }

  TemporaryFolder folder;
  FakeServer server{[](const esurge::Request& request, int64_t) {
                      return std::vector<text::TokenId>(request.sampling.adapter ? 3 : 5, 400);
                    },
                    [this](server::ServeConfig& config) { config.adapters_dir = (folder / "all").string(); }};
};

TEST(AdapterRoutes, LoadListAndUnload) {
  const AdapterServer own;
  const FakeServer& server = own.server;
  const std::string base = server.get("/v1/models").json().find("data")->items[0].find("id")->scalar;
  EXPECT_EQ(own.names("/v1/adapters", "adapters", "name"), "");
  const Reply first = own.load("first", "one");
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.json().find("version")->scalar, "1");
  EXPECT_EQ(own.load("second", (own.folder / "all/two").string()).status, 200);
  EXPECT_EQ(own.names("/v1/adapters", "adapters", "name"), "first second ");
  EXPECT_EQ(own.names("/v1/models", "data", "id"), base + " first second ");
  const Value model = server.get("/v1/models/first").json();
  EXPECT_EQ(model.find("parent")->scalar, base);
  // A request that names it is answered with it, and says so.
  const auto answer = [&](const std::string& name) {
    return server.post("/v1/completions", R"({"prompt": "a", "model": ")" + name + "\"}");
  };
  const Value adapted = answer("first").json(), plain = answer(base).json();
  EXPECT_EQ(adapted.find("model")->scalar, "first");
  EXPECT_EQ(adapted.find("usage")->find("completion_tokens")->scalar, "3");
  EXPECT_EQ(plain.find("usage")->find("completion_tokens")->scalar, "5");
  EXPECT_NE(adapted.find("system_fingerprint")->scalar, plain.find("system_fingerprint")->scalar);
  // A name is taken once, unless the adapter is replaced.
  const Reply again = own.load("first", "two");
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.error("code"), "adapter_exists");
  EXPECT_EQ(again.error("message"), "There is a model or adapter 'first' (set load_inplace to replace an adapter).");
  EXPECT_EQ(own.load(base, "two", R"(, "load_inplace": true)").status, 409);
  EXPECT_EQ(own.load("first", "two", R"(, "load_inplace": true)").json().find("version")->scalar, "3");
  EXPECT_EQ(server.post("/v1/unload_lora_adapter", R"({"lora_name": "first"})").status, 200);
  EXPECT_EQ(own.names("/v1/adapters", "adapters", "name"), "second ");
  const Reply gone = answer("first");
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(gone.error("message"), "Model 'first' not found. Available: " + base + ", second");
  EXPECT_EQ(server.post("/v1/unload_lora_adapter", R"({"lora_name": "first"})").error("code"), "adapter_not_found");
}

// Its chat template and its tokens are those of an adapter that has its own tokenizer.
TEST(AdapterRoutes, ReadTextsWithTheTokenizerOfTheFolder) {
  const AdapterServer own;
  const std::filesystem::path from = test_data("models/stories260K-chat"), to = own.folder / "all/two";
  Value config = parse_json(files::read(from / "tokenizer_config.json"));
  config.set("chat_template", Value::text("{% for m in messages %}<{{ m.content }}>{% endfor %}"));
  files::write(to / "tokenizer_config.json", to_json(config));
  files::write(
      to / "tokenizer.json",
      replaced(replaced(files::read(from / "tokenizer.json"), "\"<0x00>\"", "\"<call>\""), "\"added_tokens\": [",
               R"("added_tokens": [{"id": 3, "content": "<call>", "single_word": false, "lstrip": false,
                           "rstrip": false, "normalized": false, "special": true}, )"));
  ASSERT_EQ(own.load("plain", "one").status, 200);
  ASSERT_EQ(own.load("own", "two").status, 200);
  const auto tokens = [&](const char* model) {
    const Reply reply = own.server.post("/tokenize", str(R"({"prompt": "a <call>", "model": ")", model, "\"}"));
    return to_json(*reply.json().find("tokens"));
  };
  EXPECT_TRUE(tokens("own").ends_with(" 3]")) << tokens("own");
  EXPECT_NE(tokens("plain"), tokens("own"));
  const auto rendered = [&](const char* model) {
    const Reply reply = own.server.post(
        "/apply-template", str(R"({"messages": [{"role": "user", "content": "hi"}], "model": ")", model, "\"}"));
    return reply.json().find("prompt")->scalar;
  };
  EXPECT_EQ(rendered("own"), "<hi>");
  EXPECT_NE(rendered("plain"), "<hi>");
}

TEST(AdapterRoutes, StayBelowTheFolderOfAdapters) {
  const AdapterServer own;
  for (const std::string& path :
       {std::string("../other"), (own.folder / "other").string(), std::string("out"), std::string("linked"),
        std::string("."), std::string("/etc"), std::string("missing"), std::string("one/adapter_config.json")}) {
    const Reply reply = own.load("a", path);
    EXPECT_EQ(reply.status, 400) << path;
    EXPECT_EQ(reply.error("message"),
              "lora_path: '" + path + "' is not a folder of an adapter below the server's folder of adapters");
    EXPECT_EQ(reply.error("param"), "lora_path");
  }
  // What the engine says of a folder does not tell where it is.
  EXPECT_EQ(own.load("a", "empty").error("message"), "lora_path: empty has no adapter");
  EXPECT_EQ(own.load("../a", "one").error("message").substr(0, 9), "lora_name");
  EXPECT_EQ(own.load("a", "one\\u0000").error("message"), "lora_path: is not a folder");
  const Reply missing = own.server.post("/v1/adapters", "{}");
  EXPECT_EQ(missing.error("message"),
            "lora_name: is missing (expected a string)\nlora_path: is missing (expected a string)");
  EXPECT_EQ(own.names("/v1/adapters", "adapters", "name"), "");
  const FakeServer closed;
  EXPECT_EQ(closed.post("/v1/adapters", R"({"lora_name": "a", "lora_path": "one"})").error("code"),
            "adapters_disabled");
}

}  // namespace
}  // namespace easydel::test
