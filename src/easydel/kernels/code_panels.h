// Weights in codes of 8 or 4 bits whose panels a product decodes as it reads them. A value is (code - zero) x scale x
// factor, or code x scale + offset, computed in fp32 in this order and rounded to the spec's dtype, so that it has the
// bits of the library that wrote the codes; a product has the bits of the product with these values. quantized.h is for
// codes that are multiplied before their scale is applied.
//
// Layout: panels of 32 columns n, missing ones with code and scale 0. A panel is a stream of groups of k. A group is 32
// scales, 32 zeros or offsets if the weight has them (fp32, or bf16 or fp16 where that loses nothing), and the codes,
// missing k with code 0. Where a k may be of any group (act order), a panel is the numbers of all groups, then all
// codes:
//   bytes   for each pair of k the bytes of both, column by column
//   table4  for each 16 k two words a column, of the even and of the odd k, eight codes of four bits each
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "easydel/kernels/code_numbers.h"
#include "easydel/kernels/encoded_weight.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_layout.h"

namespace easydel::kernels {

enum class PanelCodes : uint8_t { i8, u8, e4m3, table4 };
enum class ValueRounding : uint8_t { none, bf16, f16 };

struct CodePanelsSpec {
  PanelCodes codes = PanelCodes::i8;
  int64_t group = 0;                     // k that share a scale and a zero; 0: the whole row
  std::vector<int32_t> group_of_k = {};  // act order: the group of each k, which `group` does not say then
  std::array<float, 16> table{};
  CodeShift shift = CodeShift::none;
  ValueRounding rounding = ValueRounding::none;
  float factor = 1;

  int64_t unit() const { return codes == PanelCodes::table4 ? 16 : 2; }  // k that lie together
  bool fits_layout() const { return is_ordered() || group % unit() == 0; }
  bool is_ordered() const { return !group_of_k.empty(); }
};

// Where the codes and numbers of a weight [n, k] come from. Called by several threads.
struct PanelSource {
  std::function<void(int64_t first, int64_t count, uint8_t* codes)> codes;  // row-major [count, k], one in a byte
  std::function<float(int64_t row, int64_t group)> scale, shift;            // shift: a zero or an offset, if any
};

struct CodePanelsLayout {
  CodePanelsSpec spec;
  int64_t n = 0, k = 0, group = 0, groups = 0;
  CodeNumbers numbers = CodeNumbers::f32;
  // Whether no value that is not zero is denormal, nor one on the way to it, and k is made of whole units.
  bool is_normal = false;
  const uint8_t* data = nullptr;

  // Streams of codes: the groups, or one of all k that follows the numbers of all groups.
  int64_t streams() const { return spec.is_ordered() ? 1 : groups; }
  int64_t group_of(int64_t i) const { return spec.is_ordered() ? spec.group_of_k[size_t(i)] : i / group; }
  int64_t length_of(int64_t g) const { return std::min(group, round_up(k - g * group, spec.unit())); }
  int64_t bytes_of_k() const { return spec.codes == PanelCodes::table4 ? panel_columns / 2 : panel_columns; }
  int64_t bytes_of_numbers() const { return panel_columns * bytes_of(numbers); }
  int64_t bytes_of_head() const { return bytes_of_numbers() * (spec.shift == CodeShift::none ? 1 : 2); }
  int64_t panel_bytes() const { return groups * bytes_of_head() + round_up(k, spec.unit()) * bytes_of_k(); }
  const uint8_t* group_at(int64_t panel, int64_t g) const {
    return data + panel * panel_bytes() + g * (bytes_of_head() + (spec.is_ordered() ? 0 : group * bytes_of_k()));
  }
  const uint8_t* codes_at(int64_t panel, int64_t stream) const {
    return spec.is_ordered() ? group_at(panel, groups) : group_at(panel, stream) + bytes_of_head();
  }
};

class CodePanels final : public EncodedRows {
 public:
  // The spec fits the layout; e4m3 codes are not NaN.
  CodePanels(Executor& executor, const PanelSource& from, int64_t n, int64_t k, const CodePanelsSpec& spec);

  const CodePanelsLayout& layout() const { return layout_; }
  int64_t k() const override { return layout_.k; }
  int64_t bytes() const;
  // One value after another, as a reference of what the loops decode.
  void decode(int64_t first, int64_t step, int64_t count, float* to) const override;

 private:
  CodePanelsLayout layout_;
  Buffer<uint8_t> data_;
};

// The inverse of CodePanels: codes [n, k], one in a byte, and scales [n, groups].
void unpack_panels(const CodePanels& panels, uint8_t* codes, float* scales);

// The panels that the rows of `w` lie in, one after another from the first row of panel w.first / 32 on; null: rows of
// `w` are only decoded one by one.
const CodePanels* panels_of(const EncodedWeight& w);

}  // namespace easydel::kernels
