// lm-evaluation-harness in a child process: found, started, and asked over a socket. It never sees the model; what it
// needs scored or generated it asks of this process. python/easydel_harness is the other side.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::elarge {

// A Python that has lm-evaluation-harness.
struct HarnessPython {
  std::filesystem::path program;
  std::filesystem::path package;  // the folder that holds easydel_harness
  std::string version;            // of lm_eval
};
// EASYDEL_PYTHON if it is set, otherwise the program's own environment, otherwise python3 in PATH. UserError at
// `where`, with the command that installs what is missing: no Python, no lm_eval, one that is too old.
HarnessPython find_harness(const std::string& where);

// One process of the harness. It is killed by the kernel if this one dies, and by the destructor.
class HarnessProcess {
 public:
  // UserErrors name `where`, also those of later calls. `bars`: the process shows progress bars.
  HarnessProcess(const HarnessPython& python, std::string where, bool bars);
  ~HarnessProcess();
  HarnessProcess(const HarnessProcess&) = delete;
  HarnessProcess& operator=(const HarnessProcess&) = delete;

  bool ended() const { return pid_ < 0; }
  void set_where(const std::string& where) { where_ = where; }

  // Gives the answer to line `index`.
  using GiveAnswer = std::function<void(size_t index, const std::string& answer)>;
  // Answers lines; each once.
  using AnswerLines = std::function<void(const std::vector<std::string>& lines, const GiveAnswer& give)>;
  using OnNews = std::function<void(const Value& message)>;
  // Sends a message and waits for the reply with the key `reply`; meanwhile answers what the process asks, and passes
  // its other messages to on_news. UserError: the process refuses, or it ends.
  Value ask(const Value& message, const std::string& reply, const AnswerLines& answer = {}, const OnNews& on_news = {});

 private:
  void send(const std::string& line);
  Value receive();
  void answer(const Value& lines, const AnswerLines& answer);
  void show_output();
  [[noreturn]] void refuse_ended();

  std::string where_;
  pid_t pid_ = -1;
  int socket_ = -1, output_ = -1;  // output_: the read end of its stdout and stderr
  std::string received_;           // bytes after the last whole message
  std::string tail_;               // the end of its output
  std::thread shows_;              // copies its output to ours
};

// The harness of a run's evaluations: one process for all of them, started anew if it has ended.
class Harness {
 public:
  // Finds it. UserErrors name `where`.
  Harness(const std::string& where, bool bars) : python_(find_harness(where)), bars_(bars) {}

  const HarnessPython& python() const { return python_; }
  // A process that runs; its errors name `where`.
  HarnessProcess& process(const std::string& where);
  int64_t starts() const { return starts_; }   // of processes
  int64_t new_number() { return ++numbers_; }  // of an evaluation

 private:
  HarnessPython python_;
  bool bars_;
  std::unique_ptr<HarnessProcess> process_;
  int64_t starts_ = 0, numbers_ = 0;
};

}  // namespace easydel::elarge
