// `easydel serve` as a process of a test.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/client.h"
#include "support/data.h"

namespace easydel::test {

class ServeProcess {
 public:
  explicit ServeProcess(std::vector<std::string> arguments) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::alarm(120);
    for (const auto& [name, target] : {std::pair("out", STDOUT_FILENO), std::pair("err", STDERR_FILENO)})
      ::dup2(::open((folder_ / name).c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), target);
    arguments.insert(arguments.begin(), program().string());
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
    EXPECT_TRUE(eventually([&] { return out().find(mark) != std::string::npos; })) << log();
    const std::string lines = out();
    const size_t at = lines.find(mark);
    return at == std::string::npos ? 0 : std::stoll(lines.substr(at + mark.size()));
  }
  bool is_ready() const {
    return eventually([&] { return log().find("serve: ready on ") != std::string::npos; });
  }
  void signal(int number) const { ::kill(pid_, number); }
  // Processes that it started, in their order: the ranks of --nproc.
  std::vector<pid_t> children() const {
    std::ifstream list(str("/proc/", pid_, "/task/", pid_, "/children"));
    std::vector<pid_t> out;
    for (pid_t child; list >> child;) out.push_back(child);
    return out;
  }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  std::string read(const char* name) const { return fs::exists(folder_ / name) ? read_file(folder_ / name) : ""; }
  TemporaryFolder folder_;
  pid_t pid_ = -1;
};

inline std::string posted(const std::string& path, const std::string& body) {
  return str("POST ", path,
             " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
             "\r\n\r\n", body);
}

inline std::string story_model() { return test_data("models/stories260K-chat").string(); }

inline std::string body_of(const std::string& response) { return response.substr(response.find("\r\n\r\n") + 4); }

}  // namespace easydel::test
