// `easydel serve` as a process: it listens at once, answers, and ends by a signal.
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <csignal>

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "server/client.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::RawClient;

class ServeProcess {
 public:
  explicit ServeProcess(std::vector<std::string> arguments) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::alarm(120);
    for (const auto& [name, target] : {std::pair("out", STDOUT_FILENO), std::pair("err", STDERR_FILENO)})
      ::dup2(::open((folder_ / name).c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), target);
    arguments.insert(arguments.begin(), test::program().string());
    std::vector<char*> raw;
    for (std::string& argument : arguments) raw.push_back(argument.data());
    raw.push_back(nullptr);
    ::execv(raw[0], raw.data());
    ::_exit(99);
  }
  ~ServeProcess() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;

  std::string out() const { return read("out"); }
  std::string log() const { return read("err"); }
  // The port of the line "listening on http://127.0.0.1:PORT".
  int64_t port() const {
    const std::string mark = "listening on http://127.0.0.1:";
    EXPECT_TRUE(test::eventually([&] { return out().find(mark) != std::string::npos; })) << log();
    const std::string lines = out();
    const size_t at = lines.find(mark);
    return at == std::string::npos ? 0 : std::stoll(lines.substr(at + mark.size()));
  }
  bool is_ready() const {
    return test::eventually([&] { return log().find("serve: ready on ") != std::string::npos; });
  }
  void signal(int number) const { ::kill(pid_, number); }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  std::string read(const char* name) const {
    return test::fs::exists(folder_ / name) ? test::read_file(folder_ / name) : "";
  }
  test::TemporaryFolder folder_;
  pid_t pid_ = -1;
};

std::string posted(const std::string& path, const std::string& body) {
  return str("POST ", path,
             " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
             "\r\n\r\n", body);
}

std::string story_model() { return test::test_data("models/stories260K-chat").string(); }

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

std::string body_of(const std::string& response) { return response.substr(response.find("\r\n\r\n") + 4); }

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

TEST(Serve, RefusesWhatItCannotDoBeforeAModelIsLoaded) {
  const ServeProcess other({"serve", story_model(), "--port", "0"});
  const std::string port = std::to_string(other.port());
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"serve", story_model()});
    const test::Ran ran = test::run_program(more);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_EQ(ran.err.find("esurge:"), std::string::npos) << "the model was loaded";
    return ran.err;
  };
  EXPECT_NE(refused({"--port", port}).find("in use"), std::string::npos);
  EXPECT_NE(refused({"--port", "70000"}).find("--port 70000: actions[0].serve.port: 70000 is out of range"),
            std::string::npos);
  EXPECT_NE(refused({"--tool-parser-name", "hermess"}).find("did you mean 'hermes'?"), std::string::npos);
  EXPECT_NE(refused({"--admin-key", "short"}).find("admin_key: has fewer than 16 characters"), std::string::npos);
  EXPECT_NE(refused({"--ssl-certfile", "a"}).find("is given without ssl_keyfile"), std::string::npos);
  EXPECT_NE(refused({"--tool-parser-name", "hermes", "--set", "esurge.tool_parser=mistral"}).find("give one of them"),
            std::string::npos);
}

TEST(Serve, TakesKeysFromTheEnvironment) {
  const test::Ran ran = test::run_program({"serve", story_model()}, {.environment = {{"EASYDEL_SERVE_PORT", "99999"}}});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("EASYDEL_SERVE_PORT 99999: "), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace easydel
