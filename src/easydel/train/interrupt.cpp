#include "easydel/train/interrupt.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

namespace easydel::train {
namespace {

constexpr std::array watched{SIGINT, SIGTERM, SIGHUP, SIGPIPE};

volatile std::sig_atomic_t came = 0;
std::atomic<bool> any_came = false;
static_assert(std::atomic<bool>::is_always_lock_free);
const char* volatile line = nullptr;  // what the first signal says; null: nothing
std::array<struct sigaction, watched.size()> before;

// Asked twice by a person, nothing more is saved. A closing terminal may send SIGHUP several times, and every line that
// a closed stderr does not take is one more SIGPIPE.
void note(int signal) {
  const bool asked = signal == SIGINT || signal == SIGTERM;
  if (came && asked) _exit(128 + signal);
  if (came) return;
  came = signal;
  any_came.store(true, std::memory_order_relaxed);
  if (const char* const text = line; text && signal != SIGPIPE)
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

}  // namespace

Interrupt::Interrupt(bool speaks) {
  came = 0;
  any_came = false;
  line = !speaks ? nullptr
         : ::isatty(STDERR_FILENO)
             ? "\r\033[Kstopping: the run is saved after this micro-batch; a second Ctrl-C ends it without saving\n"
             : "stopping: the run is saved after this micro-batch; a second signal ends it without saving\n";
  struct sigaction action = {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // reads and writes in progress go on
  for (size_t i = 0; i < watched.size(); ++i) {
    sigaction(watched[i], nullptr, &before[i]);
    if (watched[i] == SIGHUP && before[i].sa_handler == SIG_IGN) continue;
    sigaction(watched[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < watched.size(); ++i) sigaction(watched[i], &before[i], nullptr);
}

int Interrupt::signal() const { return came; }
const std::atomic<bool>& Interrupt::has_come() const { return any_came; }

}  // namespace easydel::train
