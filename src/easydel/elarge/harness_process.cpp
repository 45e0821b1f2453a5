#include "easydel/elarge/harness_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::elarge {
namespace {

namespace fs = std::filesystem;

constexpr const char* needed_version = "0.4.13";
constexpr size_t tail_bytes = 2000;

// The folder with easydel_harness: in the source tree above the program, or where it is installed.
fs::path package_folder(const std::string& where) {
  const fs::path program = files::canonical("/proc/self/exe");
  for (fs::path above = program.parent_path(); above != above.parent_path(); above = above.parent_path())
    for (const char* folder : {"python", "share/easydel/python"})
      if (files::is_file(above / folder / "easydel_harness" / "__main__.py")) return above / folder;
  refuse(where, str("the package easydel_harness is not beside ", program.string()), "install easydel again");
}

// The first line that a command prints; nothing: it cannot be run, or it fails.
std::optional<std::string> first_line(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>/dev/null").c_str(), "re");
  if (!pipe) return std::nullopt;
  std::array<char, 256> text{};
  const bool read = std::fgets(text.data(), int(text.size()), pipe) != nullptr;
  if (::pclose(pipe) != 0 || !read) return std::nullopt;
  std::string line = text.data();
  line.erase(line.find_last_not_of("\r\n ") + 1);
  return line;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<int64_t> numbers_of(const std::string& version) {
  std::vector<int64_t> out(1, 0);
  for (const char c : version) {
    if (c == '.')
      out.push_back(0);
    else if (c >= '0' && c <= '9')
      out.back() = out.back() * 10 + (c - '0');
    else
      break;
  }
  return out;
}

std::vector<std::string> candidates(const fs::path& package) {
  if (const char* const given = std::getenv("EASYDEL_PYTHON"); given && *given) return {given};
  std::vector<std::string> out;
  if (const fs::path own = package.parent_path() / ".venv" / "bin" / "python"; files::exists(own))
    out.push_back(own.string());
  out.emplace_back("python3");
  return out;
}

}  // namespace

HarnessPython find_harness(const std::string& where) {
  const fs::path package = package_folder(where);
  std::string python, found;
  for (const std::string& candidate : candidates(package)) {
    const auto version = first_line(quoted(candidate) +
                                    " -c 'import importlib.metadata as m\n"
                                    "try: print(m.version(\"lm_eval\"))\n"
                                    "except m.PackageNotFoundError: print(\"none\")'");
    if (!version) continue;
    if (python.empty() || *version != "none") python = candidate, found = *version;
    if (*version != "none" && numbers_of(*version) >= numbers_of(needed_version)) return {candidate, package, *version};
  }
  if (python.empty())
    refuse(where, "no Python was found to run lm-evaluation-harness with",
           str("install Python 3.10 or newer and 'pip install lm_eval==", needed_version, "', or set EASYDEL_PYTHON"));
  const std::string command = str("'", python, " -m pip install lm_eval==", needed_version, "'");
  if (found == "none")
    refuse(where, str(python, " has no lm-evaluation-harness"),
           str("install it: ", command, "; or set EASYDEL_PYTHON"));
  refuse(where, str("lm-evaluation-harness ", found, " of ", python, " is too old"),
         str("at least ", needed_version, " is needed: ", command));
}

HarnessProcess::HarnessProcess(const HarnessPython& python, std::string where, bool bars) : where_(std::move(where)) {
  int sockets[2], output[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0 || ::pipe2(output, O_CLOEXEC) != 0)
    refuse(where_, str("the harness cannot be started: ", std::strerror(errno)));
  const char* const given = std::getenv("PYTHONPATH");
  const std::string path = python.package.string() + (given && *given ? ":" + std::string(given) : std::string());
  const std::string program = python.program.string(), descriptor = std::to_string(sockets[1]);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::fcntl(sockets[1], F_SETFD, 0);
    ::dup2(output[1], STDOUT_FILENO), ::dup2(output[1], STDERR_FILENO);
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::setenv("PYTHONPATH", path.c_str(), 1);
    ::setenv("TOKENIZERS_PARALLELISM", "false", 0);
    if (!bars) ::setenv("TQDM_DISABLE", "1", 1);
    ::execlp(program.c_str(), program.c_str(), "-m", "easydel_harness", descriptor.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(sockets[1]), ::close(output[1]);
  socket_ = sockets[0], output_ = output[0];
  if (pid_ < 0) refuse(where_, str("the harness cannot be started: ", std::strerror(errno)));
  shows_ = std::thread([this] { show_output(); });
}

HarnessProcess::~HarnessProcess() {
  ::close(socket_);
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (shows_.joinable()) shows_.join();
  ::close(output_);
}

void HarnessProcess::show_output() {
  std::array<char, 4096> bytes{};
  for (;;) {
    const ssize_t count = ::read(output_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    std::fwrite(bytes.data(), 1, size_t(count), stderr);
    tail_.append(bytes.data(), size_t(count));
    if (tail_.size() > 2 * tail_bytes) tail_.erase(0, tail_.size() - tail_bytes);
  }
}

void HarnessProcess::refuse_ended() {
  check(!ended(), "the harness' process has ended before");
  ::shutdown(socket_, SHUT_RDWR);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  shows_.join();
  std::string words = tail_.substr(tail_.size() - std::min(tail_.size(), tail_bytes));
  words.erase(words.find_last_not_of(" \r\n") + 1);
  const std::string last = words.substr(words.find_last_of("\r\n") + 1);
  refuse(where_,
         str("the harness' process ended ",
             WIFSIGNALED(status) ? str("by signal ", WTERMSIG(status)) : str("with status ", WEXITSTATUS(status))),
         last.empty() ? "" : "it said last: " + last);
}

void HarnessProcess::send(const std::string& line) {
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t count = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) refuse_ended();
    rest.remove_prefix(size_t(count));
  }
}

Value HarnessProcess::receive() {
  std::array<char, 1 << 16> bytes;
  size_t searched = 0;
  for (;;) {
    const size_t end = received_.find('\n', searched);
    if (end != std::string::npos) {
      Value message = parse_json(std::string_view(received_).substr(0, end), "the harness' message");
      received_.erase(0, end + 1);
      return message;
    }
    searched = received_.size();
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) refuse_ended();
    received_.append(bytes.data(), size_t(count));
  }
}

void HarnessProcess::answer(const Value& asked, const AnswerLines& answer) {
  std::vector<std::string> lines;
  for (const Value& line : asked.items) lines.push_back(to_json(line));
  try {
    answer(lines, [this](size_t index, const std::string& text) {
      send(str(R"({"line": )", index, R"(, "answer": )", text, "}\n"));
    });
  } catch (const UserError& error) {
    if (ended()) throw;  // it was given an answer
    // The harness gives up what it was doing, and says so with the words of this error.
    Value failed = Value::map();
    failed.set("failed", Value::text(error.what()));
    send(to_json(failed) + "\n");
  }
}

Value HarnessProcess::ask(const Value& message, const std::string& reply, const AnswerLines& answer_lines,
                          const OnNews& on_news) {
  send(to_json(message) + "\n");
  for (;;) {
    Value got = receive();
    if (const Value* const found = got.find(reply)) return *found;
    if (const Value* const lines = got.find("lines")) {
      check(answer_lines, "the harness asks for answers before it has tasks");
      answer(*lines, answer_lines);
    } else if (const Value* const refused = got.find("refused")) {
      const Value *const problem = refused->find("problem"), *const remedy = refused->find("remedy");
      refuse(where_, problem ? problem->scalar : "the harness failed", remedy ? remedy->scalar : "");
    } else if (on_news) {
      on_news(got);
    }
  }
}

HarnessProcess& Harness::process(const std::string& where) {
  if (process_ && process_->ended()) process_.reset();
  if (!process_) {
    process_ = std::make_unique<HarnessProcess>(python_, where, bars_);
    ++starts_;
  }
  process_->set_where(where);
  return *process_;
}

}  // namespace easydel::elarge
