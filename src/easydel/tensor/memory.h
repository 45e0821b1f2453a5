// The allocator of large CPU tensors. A training step allocates the same few sizes thousands of times; malloc fragments
// under that (a third of a run's memory, measured) or pays for fresh pages on every call. Freed blocks are kept in huge
// pages and reused, whole or in parts. Together with kept blocks, a process holds no more than its tensors needed at
// their peak, and at most 32 MiB of fragments between small tensors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace easydel::tensor {

struct MemoryUse {
  uint64_t in_use = 0;  // bytes of large blocks in use by tensors
  uint64_t kept = 0;    // bytes of free blocks kept for reuse
  uint64_t peak = 0;    // maximum of in_use
};

// From now on new CPU tensors of this process are allocated here. May be called again; thread-safe. Existing tensors
// keep their memory. A library inside another program should not call it: that is the program's choice.
void use_kept_memory();
bool kept_memory_is_used();  // so that PeakWatch counts, whatever the tensors' sizes
MemoryUse memory_use();

// How much more memory CPU tensors of any size need at most than when it was made. One at a time; nothing without
// use_kept_memory().
class PeakWatch {
 public:
  PeakWatch();
  ~PeakWatch();
  PeakWatch(const PeakWatch&) = delete;
  PeakWatch& operator=(const PeakWatch&) = delete;
  int64_t bytes() const;
};

// The size that a request of `bytes` really takes: rounded up to eighths between powers of two and to whole pages.
size_t block_bytes(size_t bytes);

}  // namespace easydel::tensor
