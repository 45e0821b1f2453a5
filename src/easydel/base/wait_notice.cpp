#include "easydel/base/wait_notice.h"

#include "easydel/base/log_fields.h"

namespace easydel {

WaitNotice::WaitNotice(std::string text, std::chrono::milliseconds after)
    : thread_([this, text = std::move(text), after] {
        std::unique_lock lock(mutex_);
        if (over_.wait_for(lock, after, [this] { return is_over_; })) return;
        // Whatever the level is: ranks other than the first log errors alone, and it is they who wait for the first.
        log::write_at_every_level(text);
      }) {}

WaitNotice::~WaitNotice() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

}  // namespace easydel
