#include "easydel/text/constrain/limits.h"

#include <time.h>

#include "easydel/base/error.h"

namespace easydel::text::constrain {

double Work::thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

void Work::look() {
  next_ = steps_ + (1 << 16);
  if (cancel_ && cancel_->load(std::memory_order_relaxed))
    refuse("constraint", "its compilation was cancelled", "send it again");
  if (thread_seconds() - begin_ > max_seconds)
    refuse("constraint", str("needs more than ", max_seconds, " s of work"),
           "simplify it: fewer alternatives, fewer and shorter repetitions");
}

void Work::refuse_states() {
  refuse("constraint", str("needs more than ", max_states, " automaton states"),
         "lower the bounds of repetitions and lengths, above all where one is inside another");
}

}  // namespace easydel::text::constrain
