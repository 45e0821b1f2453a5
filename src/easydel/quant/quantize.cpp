#include "easydel/quant/quantize.h"

#include <ATen/ops/empty.h>

#include "easydel/base/error.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/tensor/kernels.h"

namespace easydel::quant {

Codes quantize(const Tensor& values, const Format& format) {
  check(values.dim() == 2 && values.is_cpu(), "quantize: the values are ", values.sizes(), " on ",
        values.device().str());
  const Tensor plain = values.detach(), read = tensor::kernels_serve(plain) ? plain : plain.to(at::kFloat).contiguous();
  return std::make_shared<kernels::QuantizedWeight>(
      kernels::quantize(tensor::executor(), tensor::input_of(read), read.size(0), read.size(1), format.spec));
}

Unpacked unpack(const kernels::QuantizedWeight& weight) {
  const bool bytes = weight.spec().codes == kernels::Codes::bytes;
  const Tensor codes = at::empty({weight.n(), weight.k()}, at::TensorOptions().dtype(bytes ? at::kChar : at::kByte));
  const Tensor scales = at::empty({weight.n(), weight.groups()}, at::TensorOptions().dtype(at::kFloat));
  kernels::unpack_codes(tensor::executor(), weight, static_cast<uint8_t*>(codes.mutable_data_ptr()),
                        scales.mutable_data_ptr<float>());
  return {codes.to(at::kLong), scales};
}

Tensor rounded(const Tensor& values, const Format& format) {
  return ops::dequantized(*quantize(values, format), at::kFloat).to(values.scalar_type());
}

}  // namespace easydel::quant
