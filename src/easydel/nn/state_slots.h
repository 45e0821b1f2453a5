// Which states of a storage belong to the sequences of a pass, for implementations of Memory.
#pragma once

#include <cstdint>
#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::nn {

class StateSlots {
 public:
  // slots[sequence]: the index of its states in the first dimension of the storage. Empty: there are no states.
  explicit StateSlots(std::vector<int64_t> slots);

  // The states of the sequences, in their order, of `all` [slots, shape...]: neighbouring slots as a view of the
  // storage, which put() need not write back; others as a copy.
  Tensor take(const Tensor& all) const;
  void put(const Tensor& all, const Tensor& states) const;

 private:
  Tensor indices(const Tensor& all) const;

  std::vector<int64_t> slots_;
  bool in_a_row_;
};

}  // namespace easydel::nn
