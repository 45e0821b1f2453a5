// Arbitrary bytes as a GGUF file: refused, or each of its tensors can be decoded.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "easydel/base/error.h"
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
    for (const std::string& name : model.names()) model.at(name);
  } catch (const UserError&) {
  }
  return 0;
}
