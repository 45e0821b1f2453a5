#include "easydel/text/constrain/limits.h"

#include <time.h>

#include "easydel/base/error.h"

namespace easydel::text::constrain {

double Work::thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void Work::look() {
  next_ = steps_ + (1 << 16);
  if (cancel_ && cancel_->load(std::memory_order_relaxed))
    refuse("constraint", "its compilation was cancelled", "send it again");
  if (thread_seconds() - begin_ > kMaxSeconds)
    refuse("constraint", str("needs more than ", kMaxSeconds, " s of work"),
           "simplify it: fewer alternatives, fewer and shorter repetitions");
}

void Work::refuse_states() {
  refuse("constraint", str("needs more than ", kMaxStates, " automaton states"),
         "lower the bounds of repetitions and lengths, above all where one is inside another");
}

}  // namespace easydel::text::constrain
