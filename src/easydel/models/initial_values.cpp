#include "easydel/models/initial_values.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/special_ndtri.h>

#include <cmath>
#include <numbers>

#include "easydel/tensor/random.h"

namespace easydel::models {
namespace {

// By the inverse of the normal distribution function between the two cut-offs.
void fill_cut_normal(Tensor& values, tensor::Key key, const nn::Initial& initial, const nn::Entry& entry) {
  const double cut_share = 0.5 * std::erfc(initial.cutoff / std::numbers::sqrt2), kept_share = 1.0 - 2.0 * cut_share;
  const Tensor shares = at::empty(values.sizes(), at::TensorOptions().dtype(at::kDouble));
  tensor::fill_each(
      shares, key, [&](int64_t, double u) { return cut_share + kept_share * (u + 0x1p-25); }, entry.shape,
      entry.slice.begin);
  values.copy_(at::special_ndtri(shares).mul_(initial.deviation));
}

}  // namespace

Tensor initial_values(const nn::Entry& entry, const nn::Initial& initial, uint64_t seed, at::ScalarType type) {
  Tensor values = at::empty(entry.slice.size, at::TensorOptions().dtype(type));
  const bool cut = initial.kind == nn::Initial::Kind::normal && initial.cutoff > 0.0;
  if (cut)
    fill_cut_normal(values, tensor::key_of(seed, "initial/" + entry.path), initial, entry);
  else if (initial.kind == nn::Initial::Kind::normal)
    tensor::fill_normal(values, tensor::key_of(seed, "initial/" + entry.path), initial.deviation, entry.shape,
                        entry.slice.begin);
  else if (initial.kind == nn::Initial::Kind::each)
    tensor::fill_each(values, tensor::key_of(seed, "initial/" + entry.path), initial.element, entry.shape,
                      entry.slice.begin);
  else
    values.fill_(initial.value);
  if (const int64_t row = initial.zero_row - (entry.shape.empty() ? 0 : entry.slice.begin[0]);
      initial.zero_row >= 0 && row >= 0 && row < values.size(0))
    values[row].zero_();
  return values;
}

}  // namespace easydel::models
