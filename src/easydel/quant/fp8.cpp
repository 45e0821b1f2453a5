// Weights in fp8 with a scale for each block of rows and columns, as DeepSeek and Qwen publish them: NAME F8_E4M3 and
// NAME_scale_inv, which multiplies in spite of its name. The last block may be short. Blocks may differ from weight to
// weight; those of one row hold e2m1 codes in bytes. Source: transformers/integrations/finegrained_fp8.py.
#include "easydel/base/error.h"
#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

using weights::DType;

bool claims_fp8(const WeightTensors& tensors) { return tensors.has(""); }

std::shared_ptr<CodedWeight> read_fp8(WeightTensors& tensors) {
  const auto codes = tensors.need(""), scales = tensors.need("_scale_inv");
  const bool fp4 = codes.dtype == DType::i8;
  if (!fp4 && codes.dtype != DType::f8_e4m3 && codes.dtype != DType::f8_e5m2)
    tensors.refuse_tensor("", str("is ", codes.type_name(), "; codes of this format are F8_E4M3 or F8_E5M2"));
  if (!weights::is_floating(scales.dtype) && scales.dtype != DType::u8)
    tensors.refuse_tensor("_scale_inv", str("is ", scales.type_name(), ", not numbers"));
  if (codes.shape.size() < 2) tensors.refuse_tensor("", "is not a matrix");
  std::array<int64_t, 2> block = {128, 128};
  if (const Value* const stated = tensors.config().values.find("weight_block_size");
      stated && stated->is_list() && stated->items.size() == 2)
    for (size_t d = 0; d < 2; ++d) block[d] = stated->items[d].as_int().value_or(0);
  std::vector<int64_t> shape = codes.shape;
  if (fp4) shape.back() *= 2;
  const auto weight = tensors.weight("", shape);
  set_scales(*weight, tensors, "_scale_inv", scales, block);
  weight->format = str(fp4 ? "fp4" : "fp8", ", blocks of ", weight->grid.rows, " x ", weight->grid.columns);
  if (fp4)
    weight->indices = e2m1_indices(codes), weight->table = e2m1_values();
  else
    set_byte_codes(*weight, codes);
  return weight;
}

}  // namespace

FileFormat fp8_blocks_format() { return {"fp8", "_scale_inv", "", claims_fp8, read_fp8}; }

}  // namespace easydel::quant
