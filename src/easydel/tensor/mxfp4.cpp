#include "easydel/tensor/mxfp4.h"

#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>

#include <array>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/kernels/row_tasks.h"
#include "easydel/tensor/executor.h"

namespace easydel::tensor {

Tensor mxfp4_values(const Tensor& blocks, const Tensor& scales) {
  const bool shapes = blocks.dim() == scales.dim() + 1 && blocks.dim() >= 3 && blocks.size(-1) == 16 &&
                      blocks.sizes().slice(0, size_t(scales.dim())) == scales.sizes();
  if (!shapes || blocks.scalar_type() != at::kByte || scales.scalar_type() != at::kByte)
    refuse("mxfp4", easydel::str("blocks ", blocks.sizes(), " and scales ", scales.sizes(), " do not belong together"),
           "blocks are [..., rows, groups, 16] bytes, scales [..., rows, groups]");
  constexpr std::array<float, 16> numbers = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                             -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  const Tensor from = blocks.contiguous(), powers = scales.contiguous();
  std::vector<int64_t> shape(blocks.sizes().begin(), blocks.sizes().end() - 1);
  shape.back() *= 32;
  const Tensor out = at::empty(shape, at::TensorOptions().dtype(at::kBFloat16));
  const uint8_t* const bytes = from.const_data_ptr<uint8_t>();
  const uint8_t* const scale = powers.const_data_ptr<uint8_t>();
  auto* const to = out.mutable_data_ptr<at::BFloat16>();
  kernels::run_rows(executor(), powers.numel(), 32, [&](int64_t g) {
    const int power = int(scale[g]) - 127;
    for (int64_t i = 0; i < 16; ++i) {
      const uint8_t pair = bytes[g * 16 + i];
      to[g * 32 + 2 * i] = std::ldexp(numbers[pair & 15], power);
      to[g * 32 + 2 * i + 1] = std::ldexp(numbers[pair >> 4], power);
    }
  });
  return out;
}

}  // namespace easydel::tensor
