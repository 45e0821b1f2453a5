#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

int64_t TensorView::elements() const {
  int64_t total = 1;
  for (int64_t size : shape) total *= size;
  return total;
}

std::string_view TensorView::type_name() const { return blocks ? form_of(*blocks).name : name_of(dtype); }

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
