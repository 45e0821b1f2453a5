// Start-up time of the program: start_bench [--runs 5]. `version` (no libtorch), the first token of the story
// model, and loading a saved model of SmolLM2-135M's shape, given by --model FOLDER. Afterwards the start of `easydel
// serve` to the first token of its first request, over that of `easydel generate`.
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>

#include "easydel/base/clock.h"
#include "measure.h"
#include "serve_client.h"

namespace easydel::bench {
namespace {

void first_token(const std::string& what, const std::string& model, int runs) {
  std::vector<double> first, whole;
  double peak = 0;
  for (int run = 0; run < runs; ++run) {
    const Measured m =
        run_program({"generate", model, "--prompt", "Once upon a time", "--max-new-tokens", "1", "--temperature", "0"});
    first.push_back(m.first_output_seconds);
    whole.push_back(m.seconds);
    peak = std::max(peak, m.peak_mebibytes);
  }
  std::printf("%s: first token after %s s, end after %s s, peak %.0f MiB\n", what.c_str(),
              text(spread(first), 3).c_str(), text(spread(whole), 3).c_str(), peak);
}

// Seconds from the start of a server to the first token of a request that asks again until the model is there.
double first_served_token(const std::string& model) {
  const auto begin = Clock::now();
  int pipe_ends[2];
  check(::pipe(pipe_ends) == 0, "no pipe");
  const std::string program = (source_root() / "build/bin/easydel").string();
  const pid_t server = ::fork();
  if (server == 0) {
    ::dup2(pipe_ends[1], STDOUT_FILENO);
    ::close(pipe_ends[0]);
    ::execl(program.c_str(), program.c_str(), "serve", model.c_str(), "--port", "0", "--log-level", "error", nullptr);
    ::_exit(99);
  }
  ::close(pipe_ends[1]);
  std::string told;
  char buffer[256];
  for (ssize_t got; told.find('\n') == std::string::npos && (got = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    told.append(buffer, size_t(got));
  check(told.find('\n') != std::string::npos, "the server did not start");
  const int64_t port = std::stoll(told.substr(told.rfind(':') + 1));
  std::string answer;
  while (!answer.starts_with("HTTP/1.1 200")) {
    answer = Client(port, nullptr, R"({"prompt": "Once upon a time", "max_tokens": 1, "temperature": 0})").read();
    if (!answer.starts_with("HTTP/1.1 200")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const double seconds = seconds_since(begin);
  ::close(pipe_ends[0]);
  ::kill(server, SIGTERM);
  ::waitpid(server, nullptr, 0);
  return seconds;
}

void serve_over_generate(const std::string& what, const std::string& model, int runs) {
  std::vector<double> serve, ratio;
  for (int i = 0; i < runs; ++i) {
    serve.push_back(first_served_token(model));
    const Measured m =
        run_program({"generate", model, "--prompt", "Once upon a time", "--max-new-tokens", "1", "--temperature", "0"});
    ratio.push_back(serve.back() / m.first_output_seconds);
  }
  std::printf("%s: served first token after %s s, %s times that of generate (limit 1.3)\n", what.c_str(),
              text(spread(serve), 3).c_str(), text(spread(ratio), 2).c_str());
}

int main_of(int count, char** values) {
  const int runs = std::stoi(argument(count, values, "runs", "5"));
  std::vector<double> version;
  for (int run = 0; run < runs; ++run) version.push_back(1e3 * run_program({"version"}).seconds);
  std::printf("version: %s ms (least / median / most)\n", text(spread(version), 1).c_str());
  first_token("story model, 1 MB", (source_root() / "tests/data/models/stories260K-hf").string(), runs);
  const std::string model = argument(count, values, "model", "");
  if (!model.empty()) first_token(model, model, runs);
  serve_over_generate("story model", (source_root() / "tests/data/models/stories260K-chat").string(), runs);
  if (!model.empty()) serve_over_generate(model, model, runs);
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that an interrupted run has printed its results
  return easydel::bench::main_of(count, values);
}
