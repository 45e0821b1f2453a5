// The peak number of bytes of this thread's tensors during the lifetime of an object of this class; for tests of torch
// layers.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>

namespace easydel::test {

class PeakMemory {
 public:
  int64_t bytes() const { return counter_->most; }

 private:
  struct Counter : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
      held += size;
      most = std::max(most, held);
    }
    bool memoryProfilingEnabled() const override { return true; }
    int64_t held = 0, most = 0;
  };

  std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, counter_};
};

}  // namespace easydel::test
