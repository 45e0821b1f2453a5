#include "easydel/nn/tensor_source.h"

#include <utility>

namespace easydel::nn {

Tensor TensorSource::part_of(const Tensor& file_tensor) const {
  Tensor part = viewed.empty() ? file_tensor : file_tensor.view(viewed);
  if (transposed && part.dim() > 1) part = part.transpose(-1, -2);
  if (end > 0) part = part.slice(dimension, begin, end, step);
  return part;
}

std::vector<int64_t> TensorSource::file_shape(const std::vector<int64_t>& parameter) const {
  if (!shape.empty()) return shape;
  std::vector<int64_t> out(parameter.begin() + (stacked ? 1 : 0), parameter.end());
  if (transposed && out.size() > 1) std::swap(out[out.size() - 1], out[out.size() - 2]);
  return out;
}

}  // namespace easydel::nn
