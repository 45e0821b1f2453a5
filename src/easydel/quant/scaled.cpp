// Weights whose codes are bytes named "weight", with weight_scale: int-quantized, float-quantized, naive-quantized and
// mxfp8 of compressed-tensors, FBGEMM's fp8 rows, ModelOpt's fp8, and ModelOpt's nvfp4 (U8, two e2m1 codes in a byte,
// with weight_scale_2 in addition). Scales of activations are not read: activations stay plain.
#include "easydel/base/error.h"
#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

using weights::DType;

bool claims_scaled(const WeightTensors& tensors) {
  if (!tensors.has(".weight")) return false;
  const DType dtype = tensors.view(".weight").dtype;
  return dtype == DType::i8 || dtype == DType::u8 || dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2;
}

std::shared_ptr<CodedWeight> read_scaled(WeightTensors& tensors) {
  const auto codes = tensors.need(".weight"), scales = tensors.need(".weight_scale");
  const auto second = tensors.find(".weight_scale_2"), zeros = tensors.find(".weight_zero_point");
  if (codes.shape.size() < 2) tensors.refuse_tensor(".weight", "is not a matrix");
  if (!weights::is_floating(scales.dtype) && scales.dtype != DType::u8)
    tensors.refuse_tensor(".weight_scale", str("is ", scales.type_name(), ", not numbers"));
  const bool fp4 = codes.dtype == DType::u8;
  if (fp4 && !second)
    tensors.refuse_tensor(".weight",
                          "is U8; codes of this format are I8, F8_E4M3 or F8_E5M2, or have a weight_scale_2");
  std::vector<int64_t> shape = codes.shape;
  if (fp4) shape.back() *= 2;
  const char* const name = fp4 ? "nvfp4" : codes.dtype == DType::i8 ? "int8" : "fp8";
  const auto weight = tensors.weight(name, shape);
  // Scales of one row for each row of several are groups; of fewer rows, blocks.
  set_scales(*weight, tensors, ".weight_scale", scales, {128, fp4 ? 16 : scales.dtype == DType::u8 ? 32 : 128});
  if (fp4)
    weight->indices = e2m1_indices(codes), weight->table = e2m1_values();
  else
    set_byte_codes(*weight, codes);
  if (scales.dtype == DType::f16 || scales.dtype == DType::bf16) weight->rounding = scales.dtype;
  if (second) {
    if (second->elements() != 1 || second->dtype != DType::f32)
      tensors.refuse_tensor(".weight_scale_2", "is not one number of F32");
    weight->scale = [scale = weight->scale, factor = numbers_of(*second)(0)](int64_t i) { return scale(i) * factor; };
  }
  if (zeros) {
    if (zeros->dtype != DType::i8 && !weights::is_floating(zeros->dtype))
      tensors.refuse_tensor(".weight_zero_point", str("is ", zeros->type_name(), "; I8 is read"));
    tensors.check_shape(".weight_zero_point", *zeros, scales.shape);
    weight->zero = numbers_of(*zeros);
  }
  return weight;
}

}  // namespace

FileFormat scaled_format() { return {"", ".weight_scale", ".weight", claims_scaled, read_scaled}; }

}  // namespace easydel::quant
