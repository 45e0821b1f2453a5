#include "easydel/nn/state_slots.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

namespace easydel::nn {

StateSlots::StateSlots(std::vector<int64_t> slots)
    : slots_(std::move(slots)),
      in_a_row_(!slots_.empty() &&
                std::ranges::adjacent_find(slots_, [](int64_t a, int64_t b) { return b != a + 1; }) == slots_.end()) {}

Tensor StateSlots::take(const Tensor& all) const {
  return in_a_row_ ? all.narrow(0, slots_.front(), int64_t(slots_.size())) : all.index_select(0, indices(all));
}

void StateSlots::put(const Tensor& all, const Tensor& states) const {
  if (!in_a_row_) all.index_copy_(0, indices(all), states);
}

Tensor StateSlots::indices(const Tensor& all) const { return at::tensor(slots_, at::kLong).to(all.device()); }

}  // namespace easydel::nn
