// `easydel serve` as a process: it listens at once, answers, and ends by a signal.
#include <csignal>
#include <map>

#include <gtest/gtest.h>

#include "cli/serve_process.h"
#include "easydel/base/document.h"
#include "server/client.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::body_of;
using test::posted;
using test::RawClient;
using test::ServeProcess;
using test::story_model;

TEST(Serve, AnswersAsGenerateDoesAndEndsBySignal) {
  ServeProcess server({"serve", story_model(), "--port", "0"});
  const int64_t port = server.port();
  EXPECT_EQ(RawClient(port, "GET /liveness HTTP/1.1\r\nHost: localhost\r\n\r\n").response().substr(0, 15),
            "HTTP/1.1 200 OK");
  ASSERT_TRUE(server.is_ready()) << server.log();
  RawClient client(port, posted("/v1/completions", R"({"prompt": "Once upon a time", "temperature": 0})"));
  const std::string response = client.response();
  const Value answer = parse_json(response.substr(response.find("\r\n\r\n") + 4));
  const test::Ran generated =
      test::run_program({"generate", story_model(), "-p", "Once upon a time", "-n", "16", "-t", "0", "--no-echo"});
  EXPECT_EQ(answer.find("choices")->items[0].find("text")->scalar + "\n", generated.out);

  // A stream that runs when the signal comes is finished.
  RawClient stream(
      port, posted("/v1/completions", R"({"prompt": "Once", "max_tokens": 400, "ignore_eos": true, "stream": true})"));
  stream.until("\r\n\r\n");
  server.signal(SIGTERM);
  EXPECT_TRUE(stream.chunks().ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(server.wait(), 0);
  EXPECT_FALSE(RawClient(port).connected());
}

// `more`: further fields of the request.
std::string completion(int64_t port, const std::string& more = "") {
  RawClient client(port, posted("/v1/completions", R"({"prompt": "Once upon a time", "temperature": 0)" + more + "}"));
  return parse_json(body_of(client.response())).find("choices")->items[0].find("text")->scalar;
}

TEST(Serve, RunsTheExamples) {
  const std::string examples = (test::source_root() / "examples").string();
  const test::TemporaryFolder folder;
  const ServeProcess plain({"elarge", examples + "/06_serve.yaml", "--set", "actions[0].serve.port=0", "--set",
                            "model.name_or_path=" + story_model()});
  const std::string text = (test::source_root() / "tests/data/text/war_and_peace_book_one.txt").string();
  const ServeProcess trained({"elarge", examples + "/07_train_and_serve.yaml", "--set", "actions[1].serve.port=0",
                              "--set", "model.name_or_path=" + story_model(), "--set",
                              "mixture.informs[0].data_files=" + text, "--set", "trainer.max_training_steps=2", "--set",
                              "trainer.save_directory=" + folder.path().string()});
  ASSERT_TRUE(plain.is_ready()) << plain.log();
  ASSERT_TRUE(trained.is_ready()) << trained.log();
  const test::Ran before =
      test::run_program({"generate", story_model(), "-p", "Once upon a time", "-n", "16", "-t", "0", "--no-echo"});
  EXPECT_EQ(completion(plain.port()) + "\n", before.out);
  const std::string mark = "saved in ", told = trained.out();
  const size_t at = told.find(mark) + mark.size();
  const std::string saved = told.substr(at, told.find('\n', at) - at);
  const test::Ran after =
      test::run_program({"generate", saved, "-p", "Once upon a time", "-n", "16", "-t", "0", "--no-echo"});
  EXPECT_EQ(completion(trained.port()) + "\n", after.out) << after.err;
}

// The model in another folder, with rotations by another base, so that it writes something else.
void make_other_model(const test::fs::path& folder) {
  test::fs::copy(story_model(), folder, test::fs::copy_options::recursive);
  std::string config = test::read_file(folder / "config.json");
  const std::string base = "\"rope_theta\": 10000.0";
  config.replace(config.find(base), base.size(), "\"rope_theta\": 50.0");
  test::write_file(folder / "config.json", config);
}

TEST(Serve, AnswersForSeveralModels) {
  const test::TemporaryFolder folder;
  const std::string other_folder = (folder / "a=b").string();  // a folder's name may have the sign
  make_other_model(other_folder);
  const ServeProcess server({"serve", "--model", "story=" + story_model(), "--model", "other=" + other_folder, "--port",
                             "0", "--metrics-port", "0"});
  ASSERT_TRUE(server.is_ready()) << server.log();
  const int64_t port = server.port();
  const auto written = [](const std::string& model) {
    return test::run_program({"generate", model, "-p", "Once upon a time", "-n", "16", "-t", "0", "--no-echo"}).out;
  };
  const std::string story = written(story_model()), other = written(other_folder);
  EXPECT_NE(story, other);
  EXPECT_EQ(completion(port) + "\n", story);
  EXPECT_EQ(completion(port, R"(, "model": "story")") + "\n", story);
  EXPECT_EQ(completion(port, R"(, "model": "other")") + "\n", other);
  const auto got = [](int64_t at, const std::string& path) {
    return body_of(RawClient(at, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n").response());
  };
  std::vector<std::string> ids;
  const Value listed = parse_json(got(port, "/v1/models"));
  for (const Value& model : listed.find("data")->items) ids.push_back(model.find("id")->scalar);
  EXPECT_EQ(ids, (std::vector<std::string>{"story", "other"}));
  EXPECT_NE(RawClient(port, posted("/v1/completions", R"({"prompt": "a", "model": "third"})"))
                .response()
                .find("Model 'third' not found. Available: story, other"),
            std::string::npos);
  // The address of the second listener.
  const std::string mark = "serve: metrics on http://127.0.0.1:", log = server.log();
  ASSERT_NE(log.find(mark), std::string::npos) << log;
  const std::string metrics = got(std::stoll(log.substr(log.find(mark) + mark.size())), "/metrics");
  for (const char* line : {"esurge_requests_finished_total{model_name=\"story\"} 2\n",
                           "esurge_requests_finished_total{model_name=\"other\"} 1\n"})
    EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
}

TEST(Serve, RefusesModelsBeforeItLoadsAny) {
  const auto refused = [](const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {"serve", "--port", "0"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const test::Ran ran = test::run_program(command);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_EQ(ran.out, "") << "it listened";
    return ran.err;
  };
  const std::string story = story_model();
  EXPECT_NE(refused({}).find("MODEL: is missing"), std::string::npos);
  EXPECT_NE(refused({story, story}).find("is not NAME=DIR"), std::string::npos);
  EXPECT_NE(refused({"--model", "a=" + story, "--model", "b="}).find("'b=' is not NAME=DIR"), std::string::npos);
  EXPECT_NE(refused({"--model", "a=" + story, "--model", "=" + story}).find("is not NAME=DIR"), std::string::npos);
  EXPECT_NE(
      refused({"--model", "a=" + story, "--model", "b=" + story, "--model", "b=" + story}).find("'b' is given twice"),
      std::string::npos);
  EXPECT_NE(refused({"--model", "a=" + story, "--model", "a=" + story}).find("is the name of the run's own model"),
            std::string::npos);
  const std::string missing = refused({"--model", "a=" + story, "--model", "b=/no/such/folder"});
  EXPECT_NE(missing.find("actions[0].serve.models.b: "), std::string::npos) << missing;
  EXPECT_NE(missing.find("/no/such/folder"), std::string::npos) << missing;
}

// "story 512 1a2b": id, context and fingerprint of each model.
std::map<std::string, std::pair<int64_t, std::string>> facts_of_models(int64_t port) {
  RawClient client(port, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Value answer = parse_json(body_of(client.response()));
  std::map<std::string, std::pair<int64_t, std::string>> out;
  for (const Value& model : answer.find("data")->items)
    out[model.find("id")->scalar] = {model.find("max_model_len")->as_int().value_or(0),
                                     model.find("fingerprint")->scalar};
  return out;
}

TEST(Serve, GivesOtherModelsSettingsOfTheirOwn) {
  const std::string story = story_model();
  const test::TemporaryFolder folder;
  test::write_file(folder / "run.yaml", str(R"(
model: {name_or_path: )",
                                            story, R"(}
esurge: {max_model_len: 256}
actions:
  - serve:
      host: 127.0.0.1
      port: 0
      models:
        same: )",
                                            story, R"(
        short:
          model: {name_or_path: )",
                                            story, R"(}
          esurge: {max_model_len: 96}
        coded:
          model: {name_or_path: )",
                                            story, R"(}
          quantization: {method: 8bit}
        precise:
          model: {name_or_path: )",
                                            story, R"(}
          loader: {dtype: fp32, param_dtype: fp32}
)"));
  const ServeProcess server({"elarge", (folder / "run.yaml").string()});
  const ServeProcess command({"serve", "--port", "0", "--model", "story=" + story, "--model", "v1.5=" + story,
                              "--model", "other=" + story, "--set", "esurge.max_model_len=256", "--set",
                              "models.v1.5.esurge.max_model_len=96"});
  ASSERT_TRUE(server.is_ready()) << server.log();
  const auto facts = facts_of_models(server.port());
  const std::string own = "stories260K-chat";
  EXPECT_EQ(facts.at(own), facts.at("same"));
  EXPECT_EQ(facts.at("short"), std::pair(int64_t(96), facts.at(own).second));
  EXPECT_EQ(facts.at("coded").first, 256);
  EXPECT_NE(facts.at("coded").second, facts.at(own).second);
  EXPECT_EQ(facts.at("precise").first, 256);
  EXPECT_NE(facts.at("precise").second, facts.at(own).second);
  ASSERT_TRUE(command.is_ready()) << command.log();
  const auto given = facts_of_models(command.port());
  EXPECT_EQ(given.at("story").first, 256);
  EXPECT_EQ(given.at("v1.5").first, 96);
  EXPECT_EQ(given.at("other").first, 256);
}

TEST(Serve, RefusesWrongSettingsOfOtherModels) {
  const std::string story = story_model();
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& models) {
    test::write_file(folder / "run.yaml",
                     "model: {name_or_path: " + story + "}\nactions:\n  - serve:\n      models:\n" + models);
    const test::Ran ran = test::run_program({"elarge", "run.yaml"}, {.folder = folder.path()});
    EXPECT_EQ(ran.status, 2);
    return test::replaced(ran.err, story, "STORY");
  };
  EXPECT_EQ(refused("        a: {esurg: {}, esurge: {page_sise: 3, esurge_name: b}}\n        b: 5\n"),
            "run.yaml:5:12: actions[0].serve.models.a.model: is missing\n    give the model's folder: model: "
            "{name_or_path: DIR}\n"
            "run.yaml:5:13: actions[0].serve.models.a.esurg: no such key\n    did you mean 'esurge'?\n"
            "run.yaml:5:33: actions[0].serve.models.a.esurge.page_sise: no such key\n    did you mean 'page_size'?\n"
            "run.yaml:5:60: actions[0].serve.models.a.esurge.esurge_name: is the name above it\n    leave it out\n"
            "run.yaml:6:12: actions[0].serve.models.b: '5' is not a model\n    give a folder or a name on the Hub, or "
            "sections: {model: {name_or_path: DIR}, esurge: {...}}\n"
            "5 problems in run.yaml; nothing was run.\n");
  const auto command = [&](const std::string& set) {
    const test::Ran ran = test::run_program({"serve", "--model", "a=" + story, "--model", "b=" + story, "--set", set});
    EXPECT_EQ(ran.status, 2);
    return ran.err;
  };
  EXPECT_EQ(command("models.a.esurge.page_size=16"),
            "--set models.a.esurge.page_size=16: 'a' is the first model, whose settings are those of the command\n"
            "    --set esurge.page_size=16\n");
  EXPECT_EQ(command("models.c.esurge.page_size=16"),
            "--set models.c.esurge.page_size=16: names no model of --model\n"
            "    --model NAME=DIR --set models.NAME.KEY=VALUE\n");
  EXPECT_EQ(command("models.b.esurge.page_sise=16"),
            "--set models.b.esurge.page_sise=16: actions[0].serve.models.b.esurge.page_sise: no such key\n"
            "    did you mean 'page_size'?\n1 problem in easydel serve; nothing was run.\n");
}

TEST(Serve, ReadsTheLogLevelOfItsEnvironmentFileAnew) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "serve.env").string();
  const auto write = [&](const char* level) {
    test::write_file(
        file, str("# of a service\nHF_HOME=/nowhere\nEASYDEL_SERVE_PORT=0\nEASYDEL_SERVE_LOG_LEVEL=\"", level, "\"\n"));
  };
  write("warning");
  const ServeProcess server({"serve", story_model(), "--env-file", file});
  const int64_t port = server.port();
  const auto is_up = [port](const char* path) {
    return RawClient(port, str("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        .response()
        .starts_with("HTTP/1.1 200");
  };
  ASSERT_TRUE(test::eventually([&] { return is_up("/health"); })) << server.log();
  EXPECT_TRUE(is_up("/v1/models"));
  EXPECT_EQ(server.log().find("GET /v1/models"), std::string::npos) << server.log();
  write("info");
  server.signal(SIGHUP);
  ASSERT_TRUE(test::eventually([&] { return server.log().find("read the log level anew") != std::string::npos; }))
      << server.log();
  EXPECT_TRUE(is_up("/version"));
  EXPECT_TRUE(test::eventually([&] { return server.log().find("GET /version") != std::string::npos; })) << server.log();
  // What is wrong with the file is said with its line; a flag comes before it.
  test::write_file(file, "EASYDEL_SERVE_PORT=0\nEASYDEL_SERVE_LOGLEVEL=info\n");
  EXPECT_EQ(
      test::run_program({"serve", story_model(), "--env-file", file}).err,
      file + ":2: 'EASYDEL_SERVE_LOGLEVEL' is not a key of the server\n    did you mean 'EASYDEL_SERVE_LOG_LEVEL'?\n");
  test::write_file(file, "EASYDEL_SERVE_PORT\n");
  EXPECT_EQ(test::run_program({"serve", story_model(), "--env-file", file}).err,
            file + ":1: 'EASYDEL_SERVE_PORT' is not NAME=VALUE\n    EASYDEL_SERVE_PORT=8000\n");
  test::write_file(file, "EASYDEL_SERVE_PORT=99999\n");
  const std::string wrong = test::run_program({"serve", story_model(), "--env-file", file}).err;
  EXPECT_NE(wrong.find(file + ": EASYDEL_SERVE_PORT 99999: actions[0].serve.port: 99999 is out of range"),
            std::string::npos)
      << wrong;
}

TEST(Serve, GivesTheSameBytesStreamedWholeAndUnderLoad) {
  // Small pages, speculation and few sequences: results come in pieces of many kinds, and requests wait.
  const ServeProcess server({"serve", story_model(), "--port", "0", "--set", "esurge.page_size=16", "--set",
                             "esurge.num_speculative_tokens=3", "--set", "esurge.max_num_seqs=8",
                             "--max-waiting-requests", "100"});
  ASSERT_TRUE(server.is_ready()) << server.log();
  const test::Ran ran = test::run({"python3", (test::source_root() / "scripts/trials/served_requests.py").string(),
                                   str("http://127.0.0.1:", server.port()), "--requests", "80", "--clients", "32"});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "80 requests, 0 different\n");
}

TEST(Serve, KeepsItsKeysWhenItIsKilled) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> command = {"serve",
                                            story_model(),
                                            "--port",
                                            "0",
                                            "--admin-key",
                                            "an-admin-key-for-tests",
                                            "--storage-dir",
                                            folder.path().string(),
                                            "--auto-save-interval",
                                            "0.01"};
  const auto asked = [](int64_t port, const std::string& line, const std::string& key, const std::string& body) {
    RawClient client(port,
                     str(line, " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ", key,
                         "\r\nContent-Type: application/json\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
    return client.response();
  };
  ServeProcess server(command);
  ASSERT_TRUE(server.is_ready()) << server.log();
  const std::string made = asked(server.port(), "POST /v1/admin/keys", "an-admin-key-for-tests", R"({"name": "mine"})");
  const std::string secret = parse_json(made.substr(made.find("\r\n\r\n") + 4)).find("api_key")->scalar;
  EXPECT_NE(asked(server.port(), "POST /v1/completions", secret, R"({"prompt": "x"})").find("200 OK"),
            std::string::npos);
  ASSERT_TRUE(test::eventually([&] {
    return test::fs::exists(folder / "keys.json") &&
           test::read_file(folder / "keys.json").find("\"total_requests\": 1") != std::string::npos;
  }));
  server.signal(SIGKILL);
  server.wait();
  const ServeProcess again(command);
  ASSERT_TRUE(again.is_ready()) << again.log();
  EXPECT_NE(asked(again.port(), "POST /v1/completions", secret, R"({"prompt": "x"})").find("200 OK"),
            std::string::npos);
  EXPECT_NE(asked(again.port(), "POST /v1/completions", "wrong", R"({"prompt": "x"})").find("401 "), std::string::npos);
  EXPECT_NE(asked(again.port(), "GET /v1/admin/audit-logs", "an-admin-key-for-tests", "").find("\"mine\""),
            std::string::npos);
}

TEST(Serve, EndsRequestsThatTakeTooLong) {
  ServeProcess server(
      {"serve", story_model(), "--port", "0", "--shutdown-timeout-seconds", "0", "--set", "esurge.max_num_seqs=1"});
  const int64_t port = server.port();
  ASSERT_TRUE(server.is_ready()) << server.log();
  // Requests that wait behind others when the signal comes.
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 4; ++i)
    clients.push_back(std::make_unique<RawClient>(
        port,
        posted("/v1/completions", R"({"prompt": "Once", "max_tokens": 500, "ignore_eos": true, "stream": true})")));
  for (const auto& client : clients) client->until("\r\n\r\n");
  server.signal(SIGINT);
  const std::string last = clients.back()->chunks();
  EXPECT_NE(last.find("The server is shutting down."), std::string::npos) << last;
  EXPECT_TRUE(last.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(server.wait(), 0);
}

}  // namespace
}  // namespace easydel
