// BitNet's files: weight U8 [out / 4, in], in whose bytes four rows of ternary codes lie above each other (rows r,
// r + out / 4, ... from the lowest two bits on), and weight_scale of one number, which divides the values, or
// multiplies them where quantization_config.linear_class is autobitlinear. Source: transformers/integrations/bitnet.py.
#include "easydel/base/error.h"
#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

using weights::DType;

bool claims_bitnet(const WeightTensors& tensors) {
  return tensors.has(".weight") && tensors.view(".weight").dtype == DType::u8 && !tensors.has(".weight_scale_2") &&
         tensors.view(".weight_scale").elements() == 1;
}

std::shared_ptr<CodedWeight> read_bitnet(WeightTensors& tensors) {
  const auto codes = tensors.need(".weight"), scales = tensors.need(".weight_scale");
  if (codes.shape.size() != 2) tensors.refuse_tensor(".weight", "is not a matrix");
  if (!weights::is_floating(scales.dtype)) tensors.refuse_tensor(".weight_scale", "is not a number");
  const auto weight = tensors.weight("bitnet, ternary", {codes.shape[0] * 4, codes.shape[1]});
  set_scales(*weight, tensors, ".weight_scale", scales, {});
  if (tensors.config().word("linear_class") != "autobitlinear")
    weight->scale = [scale = weight->scale](int64_t i) { return 1.0f / scale(i); };
  for (int code = 0; code < 4; ++code) weight->table[size_t(code)] = float(code - 1);
  weight->indices = [from = codes.bytes.data(), rows = codes.shape[0], in = codes.shape[1]](
                        int64_t first, int64_t step, int64_t count, uint8_t* to) {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = first + r * step;
      for (int64_t i = 0; i < in; ++i)
        to[r * in + i] = uint8_t(from[row % rows * in + i] >> (2 * (row / rows)) & std::byte(3));
    }
  };
  return weight;
}

}  // namespace

FileFormat bitnet_format() { return {"bitnet", ".weight_scale", ".weight", claims_bitnet, read_bitnet}; }

}  // namespace easydel::quant
