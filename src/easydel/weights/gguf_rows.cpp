#include "easydel/weights/gguf_rows.h"

#include <cstring>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::weights {
namespace {

struct Owned {
  std::vector<std::byte> bytes;
};

TensorView owned(TensorView view, std::vector<std::byte> bytes) {
  auto owner = std::make_shared<Owned>();
  owner->bytes = std::move(bytes);
  view.bytes = owner->bytes;
  view.owner = std::move(owner);
  return view;
}

}  // namespace

GgmlType ggml_type_of(const TensorView& view) {
  if (view.blocks) return *view.blocks;
  switch (view.dtype) {
    case DType::f16:
      return GgmlType::f16;
    case DType::bf16:
      return GgmlType::bf16;
    case DType::f32:
      return GgmlType::f32;
    case DType::f64:
      return GgmlType::f64;
    default:
      throw Bug(str("a tensor of ", name_of(view.dtype), " has no number type of ggml"));
  }
}

bool has_heads(const TensorView& view, int64_t heads) {
  return !view.shape.empty() && heads >= 1 && heads <= view.shape[0] && view.shape[0] % (2 * heads) == 0;
}

TensorView with_reordered_rows(TensorView view, int64_t heads, bool back) {
  const int64_t rows = view.shape.at(0);
  if (!has_heads(view, heads) || view.bytes.empty()) return view;  // a wrong shape, which is refused later, by name
  const StoredRows pairs{view, heads};
  const size_t width = view.bytes.size() / size_t(rows);
  std::vector<std::byte> out(view.bytes.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t paired = pairs.row_of(row);
    const int64_t from = back ? paired : row, to = back ? row : paired;
    std::memcpy(out.data() + size_t(to) * width, view.bytes.data() + size_t(from) * width, width);
  }
  files::Mapped::forget(view.bytes);
  return owned(std::move(view), std::move(out));
}

TensorView with_added(TensorView view, float value) {
  const int64_t count = view.elements();
  auto values = std::vector<float>(size_t(count));
  decode(ggml_type_of(view), view.bytes.data(), values.data(), count);
  for (float& element : values) element += value;
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  view.dtype = DType::f32;
  view.blocks.reset();
  return owned(std::move(view), std::move(bytes));
}

}  // namespace easydel::weights
