// Arbitrary bytes as a GGUF file: refused, or each of its tensors can be decoded, also as codes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/quant/file_format.h"
#include "easydel/weights/gguf_checkpoint.h"
#include "easydel/weights/gguf_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  try {
    const auto file = std::make_shared<const weights::GgufFile>(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& [name, entry] : file->tensors()) {
      const weights::TensorView view = file->view(entry);
      if (view.blocks || view.dtype == weights::DType::f32 || view.dtype == weights::DType::f16)
        weights::with_added(view, 1);
      if (!view.shape.empty()) weights::with_reordered_rows(view, 2, true);
    }
    const weights::GgufCheckpoint model(file);
    to_json(model.config());
    for (const std::string& name : model.names()) {
      model.at(name);
      const weights::StoredRows rows = model.stored(name);
      if (!quant::is_blocks_of_codes(rows.view)) continue;
      quant::CodedWeight weight;
      weight.shape = rows.view.shape;
      quant::set_blocks(weight, rows);
      auto row = std::vector<float>(size_t(weight.k()));
      for (const int64_t r : {int64_t(0), weight.rows() - 1}) weight.decode(r, 1, 1, row.data());
      weight.check_scales();
    }
  } catch (const UserError&) {
  }
  return 0;
}
