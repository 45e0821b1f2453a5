#include "easydel/train/interrupt.h"

#include <unistd.h>
#include <csignal>

namespace easydel::train {
namespace {

volatile std::sig_atomic_t came = 0;
struct sigaction before_int, before_term;

void note(int signal) {
  if (came) _exit(128 + signal);  // asked twice: nothing more is saved
  came = signal;
}

}  // namespace

Interrupt::Interrupt() {
  came = 0;
  struct sigaction action = {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // reads and writes in progress go on
  sigaction(SIGINT, &action, &before_int);
  sigaction(SIGTERM, &action, &before_term);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
}

int Interrupt::signal() const { return came; }

}  // namespace easydel::train
