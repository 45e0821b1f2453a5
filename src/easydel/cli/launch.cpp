// Launches local ranks: fork, exec, and one loop over signals and the ranks' stderr.
#include "easydel/cli/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"

namespace easydel::cli {
namespace {

[[noreturn]] void fail(const char* what) {
  refuse("--nproc", str("the ranks cannot be started: ", what, ": ", std::strerror(errno)));
}

// Bound and closed again: the port is not reserved, but the kernel hands out a free port again only late.
int free_port() {
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  bool ok = s >= 0 && bind(s, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
            getsockname(s, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (!ok) fail("no free port");
  close(s);
  return ntohs(address.sin_port);
}

std::string own_program() {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) fail("/proc/self/exe");
  return std::string(path, size_t(length));
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(size_t(n));
  }
}

struct Rank {
  int index = 0;
  pid_t pid = -1;
  int errors = -1;  // read end of its stderr; -1: it inherits ours
  std::string line;
  bool running = true;

  void show(char* data, ssize_t size) {
    for (char c : std::string_view(data, size_t(size))) {
      if (c != '\n' && c != '\r') line += c;
      if (!line.empty() && (c == '\n' || c == '\r' || line.size() > 16384)) flush();
    }
  }
  void flush() {
    if (line.empty()) return;
    write_all(str("[rank ", index, "] ", line, "\n"));
    line.clear();
  }
};

class Launcher {
 public:
  explicit Launcher(const Launch& options) : options_(options) {}
  ~Launcher() {
    for (auto& rank : ranks_) {
      if (rank.errors >= 0) close(rank.errors);
    }
    if (signals_ >= 0) close(signals_);
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  }

  int run() {
    sigset_t mask;
    sigemptyset(&mask);
    for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&mask, signal);
    sigprocmask(SIG_BLOCK, &mask, &old_mask_);
    signals_ = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) fail("signalfd");
    start();
    while (std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; })) wait();
    for (auto& rank : ranks_) {
      drain(rank);
      rank.flush();
    }
    return status_;
  }

 private:
  void start() {
    port_ = free_port();
    program_ = options_.program.empty() ? own_program() : options_.program;
    launcher_ = getpid();
    for (int i = 0; i < options_.ranks; ++i) {
      int ends[2] = {-1, -1};
      if (i > 0 && pipe2(ends, O_CLOEXEC) != 0) abandon("pipe");
      pid_t pid = fork();
      if (pid < 0) abandon("fork");
      if (pid == 0) become(i, ends[1]);
      if (i > 0) {
        close(ends[1]);
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
      }
      ranks_.push_back({i, pid, ends[0], {}, true});
    }
  }

  [[noreturn]] void abandon(const char* what) {
    int error = errno;
    for (auto& rank : ranks_) kill(rank.pid, SIGKILL), waitpid(rank.pid, nullptr, 0);
    errno = error;
    fail(what);
  }

  // Runs in the child and does not return.
  [[noreturn]] void become(int index, int errors) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher_) _exit(1);  // the launcher died before prctl
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    if (index > 0) {
      // Leaves the terminal's process group: Ctrl-C reaches rank 0 and the launcher, which passes it on once.
      setpgid(0, 0);
      int null = open("/dev/null", O_RDWR | O_CLOEXEC);
      dup2(null, STDIN_FILENO);
      dup2(null, STDOUT_FILENO);
      dup2(errors, STDERR_FILENO);
      setenv("EASYDEL_LOG", "error", 0);
    }
    auto set = [](const char* name, int value) { setenv(name, std::to_string(value).c_str(), 1); };
    set("RANK", index);
    set("LOCAL_RANK", index);
    set("WORLD_SIZE", options_.ranks);
    set("LOCAL_WORLD_SIZE", options_.ranks);
    set("MASTER_PORT", port_);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    unsigned threads = std::max(1u, std::thread::hardware_concurrency() / unsigned(options_.ranks));
    setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 0);
    setenv("OMP_WAIT_POLICY", "PASSIVE", 0);  // spinning ranks on shared cores slow each other down

    std::vector<char*> words = {program_.data()};
    std::vector<std::string> arguments = options_.arguments;
    for (auto& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    execv(program_.c_str(), words.data());
    write_all(str("--nproc: cannot start ", program_, ": ", std::strerror(errno), "\n"));
    _exit(127);
  }

  void wait() {
    std::vector<pollfd> watched = {{signals_, POLLIN, 0}};
    for (auto& rank : ranks_) {
      if (rank.errors >= 0) watched.push_back({rank.errors, POLLIN, 0});
    }
    int milliseconds = -1;
    if (kill_at_) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*kill_at_ - Clock::now());
      milliseconds = std::max<int>(0, int(left.count()) + 1);
    }
    poll(watched.data(), watched.size(), milliseconds);
    for (auto& rank : ranks_) drain(rank);
    for (signalfd_siginfo info; read(signals_, &info, sizeof info) == ssize_t(sizeof info);) {
      if (info.ssi_signo != SIGCHLD) pass_on(int(info.ssi_signo), info.ssi_code == SI_KERNEL);
    }
    reap();
    if (kill_at_ && Clock::now() >= *kill_at_) {
      kill_at_.reset();
      for (auto& rank : ranks_) {
        if (rank.running) kill(rank.pid, SIGKILL);
      }
    }
  }

  void drain(Rank& rank) {
    char buffer[4096];
    while (rank.errors >= 0) {
      ssize_t n = read(rank.errors, buffer, sizeof buffer);
      if (n < 0) return;
      if (n == 0) {
        rank.flush();
        close(rank.errors);
        rank.errors = -1;
        return;
      }
      rank.show(buffer, n);
    }
  }

  // A signal from the terminal has already reached rank 0.
  void pass_on(int signal, bool from_terminal) {
    stopping_ = true;
    for (auto& rank : ranks_) {
      if (rank.running && !(from_terminal && rank.index == 0)) kill(rank.pid, signal);
    }
  }

  void reap() {
    for (auto& rank : ranks_) {
      int status = 0;
      if (!rank.running || waitpid(rank.pid, &status, WNOHANG) != rank.pid) continue;
      rank.running = false;
      int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (code == 0 || status_ != 0) continue;
      status_ = code;
      if (code == 128 + SIGPIPE) stopping_ = true;  // nobody reads its stderr any more: all ranks save and stop
      bool others = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; });
      if (!stopping_) {
        for (auto& left : ranks_) drain(left);
        std::string how = WIFEXITED(status)
                              ? str("failed with exit status ", code)
                              : str("was killed by signal ", code - 128, " (", strsignal(code - 128), ")");
        write_all(str("easydel: rank ", rank.index, " of ", options_.ranks, " ", how,
                      others ? "; the other ranks were stopped, too\n" : "\n"));
        for (auto& left : ranks_) {
          if (left.running) kill(left.pid, SIGTERM);
        }
      }
      // Ranks that were asked to stop may still be saving; they get the grace time, counted from the first exit.
      kill_at_ = Clock::now() + std::chrono::milliseconds(int64_t(options_.grace_seconds * 1000));
    }
  }

  const Launch& options_;
  std::string program_;
  std::vector<Rank> ranks_;
  pid_t launcher_ = 0;
  int port_ = 0, signals_ = -1, status_ = 0;
  bool stopping_ = false;  // a signal asked the run to end
  std::optional<Clock::time_point> kill_at_;
  sigset_t old_mask_{};
};

}  // namespace

bool ranks_can(const std::string& name) {
  return name == "easydel generate" || name == "easydel probe engine" || name == "easydel serve";
}

int launch(const Launch& options) {
  check(options.ranks >= 1, "launch: ", options.ranks, " ranks");
  if (std::getenv("RANK") || std::getenv("WORLD_SIZE")) {
    refuse("--nproc", "this process is already a rank (RANK or WORLD_SIZE is set)",
           "remove --nproc under torchrun, or unset RANK and WORLD_SIZE");
  }
  return Launcher(options).run();
}

}  // namespace easydel::cli
