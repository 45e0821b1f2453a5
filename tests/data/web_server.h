// A server of files that also misbehaves (tests/hub/web_server.py), for tests of remote files.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::data {

class WebServer {
 public:
  explicit WebServer(const std::filesystem::path& folder) : log_(folder / "log") {
    test::write_file(log_, "");
    int in[2], out[2];
    check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe");
    const std::string script = (test::source_root() / "tests/hub/web_server.py").string();
    const std::string served = (folder / "served").string();
    child_ = fork();
    if (child_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      execlp("python3", "python3", script.c_str(), served.c_str(), log_.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    stdin_ = in[1];
    for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) port_ += c;
    close(out[0]);
  }
  ~WebServer() {
    close(stdin_);
    kill(child_, SIGTERM);
    waitpid(child_, nullptr, 0);
  }
  bool started() const { return !port_.empty(); }
  std::string address() const { return "http://127.0.0.1:" + port_; }
  std::string log() const { return test::read_file(log_); }
  void forget() const { test::write_file(log_, ""); }

 private:
  std::filesystem::path log_;
  pid_t child_ = -1;
  int stdin_ = -1;
  std::string port_;
};

}  // namespace easydel::data
