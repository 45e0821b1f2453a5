// New weights by their route, over a fake engine.
#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "server/fake_engine.h"
#include "support/data.h"

namespace easydel::test {
namespace {

constexpr const char* admin_key = "an-administrators-key";

struct WeightsServer {
  WeightsServer() {
    for (const char* name : {"all/second", "all/third", "other"}) {
      files::make_directories(folder / name);
      files::write(folder / name / "config.json", "{}");
    }
    files::make_directories(folder / "all/empty");
    files::link(folder / "other", folder / "all/out");
  }
  Reply change(const std::string& body) const { return server.post("/v1/admin/weights", body); }
  std::string fingerprint() const {
    return server.get("/v1/models").json().find("data")->items[0].find("fingerprint")->scalar;
  }

  TemporaryFolder folder;
  FakeServer server{random_answer,
                    [this](server::ServeConfig& config) {
                      config.weights_dir = (folder / "all").string(), config.admin_key = admin_key;
                    },
                    [](server::ServedModel& model) { model.fingerprint = "first"; }};
};

constexpr const char* question = R"({"prompt": "a")";

TEST(WeightsRoute, ChangesWhatAnswers) {
  const WeightsServer own;
  EXPECT_EQ(own.fingerprint(), "first");
  const Reply changed = own.change(R"({"path": "second"})");
  ASSERT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(
      to_json(changed.json()),
      to_json(parse_json(str(R"({"model": ")", changed.json().find("model")->scalar,
                             R"(", "path": "second", "fingerprint": "second", "previous_fingerprint": "first"})"))));
  EXPECT_EQ(own.fingerprint(), "second");
  const Value answer = own.server.post("/v1/completions", std::string(question) + "}").json();
  EXPECT_EQ(answer.find("system_fingerprint")->scalar, "second");
}

// A request that has chosen its model before the change, and is answered after it, has the fingerprint of what answers.
TEST(WeightsRoute, TellsWhichWeightsHaveAnswered) {
  const WeightsServer own;
  own.server.engine->update_weights(own.folder / "all/third", false);
  ASSERT_EQ(own.fingerprint(), "first") << "the list of models does not know yet";
  const Value whole = own.server.post("/v1/completions", std::string(question) + "}").json();
  EXPECT_EQ(whole.find("system_fingerprint")->scalar, "third");
  const std::string chat = R"({"messages": [{"role": "user", "content": "a"}]})";
  EXPECT_EQ(own.server.post("/v1/chat/completions", chat).json().find("system_fingerprint")->scalar, "third");
  for (const auto& [route, body] : {std::pair{"/v1/completions", std::string(question)},
                                    std::pair{"/v1/chat/completions", chat.substr(0, chat.size() - 1)}}) {
    const std::vector<Value> events = own.server.post(route, body + R"(, "stream": true})").events();
    ASSERT_GT(events.size(), 1u) << route;
    for (const Value& event : events) EXPECT_EQ(event.find("system_fingerprint")->scalar, "third") << route;
  }
}

TEST(WeightsRoute, EndsWhatRunsIfItIsAskedTo) {
  const WeightsServer own;
  own.server.engine->hold();
  RawClient client(own.server.http->port(), FakeServer::posted("/v1/completions", std::string(question) + "}",
                                                               own.server.key_header() + "Connection: close\r\n"));
  ASSERT_TRUE(eventually([&] { return own.server.engine->added() == 1; }));
  EXPECT_EQ(own.change(R"({"path": "second", "abort_requests": true})").status, 200);
  own.server.engine->release();
  const std::string answer = client.all();
  EXPECT_NE(answer.find(" 503 "), std::string::npos) << answer;
  EXPECT_NE(answer.find("An administrator ended the request."), std::string::npos) << answer;
}

TEST(WeightsRoute, RefusesWithOneClearError) {
  const WeightsServer own;
  for (const std::string& path : {std::string("../other"), (own.folder / "other").string(), std::string("out"),
                                  std::string("."), std::string("/etc"), std::string("missing")}) {
    const Reply reply = own.change(R"({"path": ")" + path + "\"}");
    EXPECT_EQ(reply.status, 400) << path;
    EXPECT_EQ(reply.error("message"),
              "path: '" + path + "' is not a folder of weights below the server's folder of weights");
    EXPECT_EQ(reply.error("param"), "path");
  }
  // What is said of a folder does not tell where it is, and nothing has changed.
  EXPECT_EQ(own.change(R"({"path": "empty"})").error("message"), "path: empty has no config.json");
  EXPECT_EQ(own.fingerprint(), "first");
  EXPECT_EQ(own.change(R"({"path": "second", "model": "nobody"})").status, 404);
  EXPECT_EQ(own.change(R"({"path": "second\u0000"})").error("message"), "path: is not a folder");
  EXPECT_EQ(own.change("{}").error("message"), "path: is missing (expected a string)");
  const Reply other = own.server.post("/v1/admin/weights", R"({"path": "second"})", "Authorization: Bearer other\r\n");
  EXPECT_EQ(other.status, 401);
  EXPECT_EQ(own.fingerprint(), "first");
  const FakeServer closed(random_answer, [](server::ServeConfig& config) { config.admin_key = admin_key; });
  const Reply refused = closed.post("/v1/admin/weights", R"({"path": "second"})");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.error("code"), "weights_disabled");
  EXPECT_EQ(refused.error("message"), "This server takes no weights from requests (set serve.weights_dir).");
}

}  // namespace
}  // namespace easydel::test
