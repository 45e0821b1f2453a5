// Where a parameter's values come from in a checkpoint: file tensors plus one invertible step. Loading, saving back
// and the norms of a probe's gradients use the same declaration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::nn {

// How the tensors of a file are packed.
enum class Packing : uint8_t {
  none,
  mxfp4  // two tensors: blocks of 32 fp4 numbers and a power of two for each (OCP Microscaling Formats 1.0)
};

struct TensorSource {
  // The file's name; stacked: one for each index of the parameter's dimension 0 (experts); mxfp4: blocks and scales.
  std::vector<std::string> tensors;
  bool stacked = false;
  Packing packing = Packing::none;
  // The parameter (stacked: one index of it) inside a file tensor, by these steps in this order.
  std::vector<int64_t> shape;   // the file tensor's; empty: as the parameter's, before it is transposed
  std::vector<int64_t> viewed;  // viewed as this shape; empty: as it is
  bool transposed = false;      // its last two dimensions are swapped
  int64_t dimension = 0, begin = 0, end = 0, step = 1;  // then a slice of one dimension; end 0: all of it

  // What the loader found: the file's own names of `tensors`, and its dtype. Empty: nothing was loaded.
  std::vector<std::string> found;
  at::ScalarType found_type = at::ScalarType::Undefined;

  // The part of a file tensor that is the parameter's: a view.
  Tensor part_of(const Tensor& file_tensor) const;
  // The shape of the file's tensors for a parameter of shape `parameter`.
  std::vector<int64_t> file_shape(const std::vector<int64_t>& parameter) const;
};

}  // namespace easydel::nn
