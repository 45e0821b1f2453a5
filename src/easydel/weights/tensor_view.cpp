#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

int64_t TensorView::elements() const {
  int64_t total = 1;
  for (int64_t size : shape) total *= size;
  return total;
}

std::string_view TensorView::type_name() const { return blocks ? form_of(*blocks).name : name_of(dtype); }

int64_t StoredRows::row_of(int64_t row) const {
  if (heads == 0) return row;
  const int64_t size = view.shape.at(0) / heads, in_head = row % size;
  // Row i of the first half is the first of pair i, and row i of the second half the second.
  return row - in_head + in_head % (size / 2) * 2 + in_head / (size / 2);
}

std::string in_quotes(std::string_view name) {
  std::string out = "'";
  for (char c : name.substr(0, 200)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + (name.size() > 200 ? "...'" : "'");
}

std::optional<uint64_t> bytes_of_shape(std::span<const int64_t> shape, uint64_t unit) {
  uint64_t total = unit;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(total, uint64_t(size), &total)) return std::nullopt;
  return total;
}

}  // namespace easydel::weights
