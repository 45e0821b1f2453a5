#include "easydel/nn/cut_codes.h"

#include <ATen/ops/from_blob.h>

#include <cstring>

namespace easydel::nn {

CutCodes::CutCodes(ops::Matrix whole, const collective::Team& team) : mine_(std::move(whole)), rows_(mine_.out()) {
  if (team.mesh().size("fsdp") == 1 || !mine_.quantized) return;
  const collective::Group group = team.group({"fsdp"});
  if (rows_ % (group.size() * kernels::rows_of_panel) != 0) return;
  group_ = group;
  const int64_t rows = rows_ / group_.size();
  mine_.quantized =
      std::make_shared<const kernels::QuantizedWeight>(kernels::rows_of(*mine_.quantized, group_.rank() * rows, rows));
}

ops::Matrix CutCodes::whole() const {
  if (!is_cut()) return mine_;
  const kernels::QuantizedWeight& part = *mine_.quantized;
  // A part is whole panels, so the parts one after another are the whole.
  const Tensor bytes = at::from_blob(const_cast<uint8_t*>(part.data()), {part.bytes()}, at::kByte);
  const Tensor all = group_.all_gather(bytes, 0);
  kernels::QuantizedWeight out(rows_, part.k(), part.spec());
  check(all.numel() == out.bytes(), "codes: ", all.numel(), " bytes of ", out.bytes());
  std::memcpy(out.data(), all.const_data_ptr<uint8_t>(), size_t(out.bytes()));
  ops::Matrix whole = mine_;
  whole.quantized = std::make_shared<const kernels::QuantizedWeight>(std::move(out));
  return whole;
}

}  // namespace easydel::nn
