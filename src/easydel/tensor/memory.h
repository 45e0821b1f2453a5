// Memory of large CPU tensors. A training step asks for the same few sizes thousands of times; malloc's heap falls into
// pieces on that (a third of a run's memory, measured) or pays for fresh pages at every call. What is given back is
// kept and given out again, whole or in parts, in huge pages; with what is kept, a process never holds more than
// tensors needed at their peak, and 32 MiB of pieces between small ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace easydel::tensor {

struct MemoryUse {
  uint64_t in_use = 0;  // bytes of large blocks that tensors hold
  uint64_t kept = 0;    // free ones that wait for the next tensor
  uint64_t peak = 0;    // of in_use
};

// From now on new CPU tensors of this process get their memory here. May be called again; thread-safe. Tensors made
// before keep theirs. Not for a library inside another program: that is the program's choice.
void use_kept_memory();
MemoryUse memory_use();

// The size that a request of `bytes` really takes: steps of an eighth between powers of two, whole pages.
size_t block_bytes(size_t bytes);

}  // namespace easydel::tensor
