#include "easydel/train/line_programs.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"

extern char** environ;

namespace easydel::train {
namespace {

constexpr size_t longest_line = size_t{1} << 20;

}  // namespace

// A started program; its standard input and output are one socket.
class LineProgram {
 public:
  explicit LineProgram(const LinePrograms::Setup& setup) : where_(setup.where), questions_(setup.questions) {
    const std::vector<std::string>& command = setup.command;
    int ends[2], errors[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("no socket could be made");
    if (pipe2(errors, O_CLOEXEC) != 0) fail("no pipe could be made");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int failed = posix_spawnp(&child_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    close(errors[1]);
    talk_ = ends[0], errors_ = errors[0];
    for (const int file : {talk_, errors_}) fcntl(file, F_SETFL, O_NONBLOCK);
    if (failed != 0) {
      child_ = -1;
      refuse(where_, str("'", command[0], "' cannot be started: ", std::strerror(failed)),
             "give the program's path, or the name of one in PATH");
    }
  }
  ~LineProgram() {
    if (talk_ >= 0) close(talk_);
    if (errors_ >= 0) close(errors_);
    if (child_ <= 0) return;
    // Its input has ended; a program that goes on is killed.
    for (int i = 0; i < 50; ++i) {
      if (waitpid(child_, nullptr, WNOHANG) != 0) return;
      usleep(10'000);
    }
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  LineProgram(const LineProgram&) = delete;
  LineProgram& operator=(const LineProgram&) = delete;

  void ask(const std::string& line) { unsent_ += line, ++open_; }
  int64_t open() const { return open_; }  // questions without an answer
  void add_to(std::vector<pollfd>& files) const {
    files.push_back({talk_, static_cast<short>(POLLIN | (unsent_.empty() ? 0 : POLLOUT)), 0});
    files.push_back({errors_, POLLIN, 0});
  }
  // Writes and reads what is possible; gives each whole line of an answer. True: something moved.
  template <class Take>
  bool exchange(const Take& take) {
    bool moved = false;
    while (!unsent_.empty()) {
      const ssize_t sent = send(talk_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      unsent_.erase(0, size_t(sent)), moved = true;
    }
    read_errors();
    bool over = false;
    moved |= read_into(talk_, received_, over);
    for (size_t end; (end = received_.find('\n')) != std::string::npos; received_.erase(0, end + 1)) {
      last_line_ = received_.substr(0, end);
      if (last_line_.find_first_not_of(" \t\r") == std::string::npos) continue;
      take(last_line_);
      --open_;
    }
    if (received_.size() > longest_line) fail(str("answered a line of more than ", longest_line, " bytes"));
    if (over && open_ > 0) died();
    return moved;
  }
  [[noreturn]] void fail(const std::string& what) const {
    refuse(where_, what,
           last_line_.empty() ? "it had not answered anything"
                              : "its last line was: " + last_line_.substr(0, std::min<size_t>(last_line_.size(), 200)));
  }

 private:
  // False: there was nothing. `over`: nothing more will come.
  static bool read_into(int file, std::string& to, bool& over) {
    char buffer[1 << 16];
    bool any = false;
    for (;;) {
      const ssize_t count = read(file, buffer, sizeof buffer);
      if (count > 0) {
        to.append(buffer, size_t(count)), any = true;
        if (to.size() > longest_line) return any;
        continue;
      }
      over = count == 0 || (errno != EAGAIN && errno != EINTR);
      return any;
    }
  }
  void read_errors() {
    bool over = false;
    read_into(errors_, said_, over);
    for (size_t end; (end = said_.find('\n')) != std::string::npos; said_.erase(0, end + 1)) {
      last_error_ = said_.substr(0, std::min<size_t>(end, 1000));
      log::info(where_, ": ", last_error_);
    }
    if (said_.size() > longest_line) said_.clear();
  }
  [[noreturn]] void died() {
    read_errors();
    int status = 0;
    for (int i = 0; i < 100 && waitpid(child_, &status, WNOHANG) == 0; ++i) usleep(10'000);
    child_ = -1;
    const std::string how = WIFSIGNALED(status) ? str("was ended by signal ", WTERMSIG(status))
                                                : str("ended with exit status ", WEXITSTATUS(status));
    if (!last_error_.empty()) last_line_ = last_error_;  // says why, which its last answer does not
    fail(str(how, " with ", open_, " ", questions_));
  }

  std::string where_, questions_;
  pid_t child_ = -1;
  int talk_ = -1, errors_ = -1;
  std::string unsent_, received_, said_, last_line_, last_error_;
  int64_t open_ = 0;
};

LinePrograms::LinePrograms(Setup setup) : setup_(std::move(setup)) {}
LinePrograms::~LinePrograms() = default;

size_t LinePrograms::index_of(const Value& answer, const LineProgram& worker, size_t count) const {
  const Value* const id = answer.is_map() ? answer.find("id") : nullptr;
  if (!id || !answer.find(setup_.field)) worker.fail("answered a line without id and " + setup_.field);
  const int64_t index = id->as_int().value_or(-1) - next_id_;
  if (index < 0 || index >= int64_t(count)) worker.fail("answered an id that was not asked for");
  return size_t(index);
}

std::vector<Value> LinePrograms::ask(const std::vector<Question>& questions,
                                     const std::function<std::string(const Value&)>& problem) {
  std::vector<Value> out(questions.size());
  std::vector<bool> answered(questions.size(), false);
  while (int64_t(workers_.size()) < setup_.workers) workers_.push_back(std::make_unique<LineProgram>(setup_));
  for (const Question& one : questions) workers_[one.worker % workers_.size()]->ask(to_json(one.document) + "\n");
  auto last = Clock::now();
  size_t left = questions.size();
  while (left > 0) {
    std::vector<pollfd> files;
    for (const auto& worker : workers_) worker->add_to(files);
    poll(files.data(), files.size(), 100);
    for (const auto& worker : workers_) {
      const bool moved = worker->exchange([&](const std::string& line) {
        Value answer;
        try {
          answer = parse_json(line, setup_.where);
        } catch (const UserError&) {
          worker->fail("answered a line that is not JSON");
        }
        const size_t index = index_of(answer, *worker, questions.size());
        if (const std::string wrong = problem(answer); !wrong.empty()) worker->fail(wrong);
        if (answered[index]) worker->fail(str("answered id ", next_id_ + int64_t(index), " twice"));
        answered[index] = true, out[index] = std::move(answer), --left;
      });
      if (moved) last = Clock::now();
    }
    if (seconds_since(last) > setup_.timeout_seconds)
      for (const auto& worker : workers_)
        if (worker->open() > 0)
          worker->fail(str("gave no answer for ", setup_.timeout_seconds, " seconds (timeout_seconds), with ",
                           worker->open(), " ", setup_.questions));
  }
  next_id_ += int64_t(questions.size());
  return out;
}

}  // namespace easydel::train
