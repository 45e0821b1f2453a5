// A range of addresses that gets memory from the system only where it is written, and can give it back in parts.
#pragma once

#include <cstdint>

#include "easydel/tensor/torch.h"

namespace easydel::tensor {

class ReservedMemory {
 public:
  // UserError: the system has no room for so many addresses (ulimit -v).
  explicit ReservedMemory(int64_t bytes);
  ~ReservedMemory();
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

  // What was never written, or was released, is zero.
  std::byte* data() const { return data_; }
  // Gives the memory of bytes [begin, begin + count) back, as far as whole pages of the system lie inside.
  void release(int64_t begin, int64_t count);

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_;
};

}  // namespace easydel::tensor
