// MXFP4 as published gpt_oss folders hold their experts (OCP Microscaling Formats 1.0): NAME_blocks with two e2m1 codes
// in a byte, the lower half first, and NAME_scales with a power of two for every 32.
#include "easydel/base/error.h"
#include "easydel/base/text_table.h"
#include "easydel/quant/file_format.h"

namespace easydel::quant {

std::shared_ptr<CodedWeight> read_mxfp4(const std::string& where, const weights::TensorView& blocks,
                                        const weights::TensorView& scales) {
  const std::vector<int64_t>& shape = blocks.shape;
  const bool fit = shape.size() >= 3 && shape.back() == 16 && blocks.dtype == weights::DType::u8 &&
                   scales.dtype == weights::DType::u8 &&
                   std::vector<int64_t>(shape.begin(), shape.end() - 1) == scales.shape;
  if (!fit)
    refuse(where,
           str("blocks ", shape_text(shape), " and scales ", shape_text(scales.shape), " do not belong together"),
           "blocks are [..., rows, groups, 16] bytes, scales [..., rows, groups]");
  for (const int64_t size : shape)
    if (size <= 0) refuse(where, "blocks " + shape_text(shape) + " are empty", "fetch the file again");
  auto out = std::make_shared<CodedWeight>();
  out->format = "mxfp4";
  out->shape.assign(shape.begin(), shape.end() - 2);
  out->shape.push_back(shape[shape.size() - 2] * 32);
  out->dtype = out->rounding = weights::DType::bf16;  // which holds every value
  out->grid.columns = 32;
  out->grid.row_stride = shape[shape.size() - 2];
  out->scale = numbers_of(scales);
  out->scales = scales.elements();
  weights::TensorView flat = blocks;
  flat.shape = out->shape;
  flat.shape.back() /= 2;
  out->indices = e2m1_indices(flat);
  out->table = e2m1_values();
  out->exact = true;
  out->parts = {{"blocks", blocks}, {"scales", scales}};
  out->where = where;
  return out;
}

}  // namespace easydel::quant
