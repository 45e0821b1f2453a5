#include "easydel/kernels/code_panels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/half.h"

namespace easydel::kernels {
namespace {

// Code i of a column in the codes of a group: a byte, or with table4 the byte's low or high half.
int64_t byte_of(const CodePanelsLayout& layout, int64_t i, int64_t column) {
  if (layout.spec.codes != PanelCodes::table4) return (i / 2 * panel_columns + column) * 2 + i % 2;
  return ((i / 16 * panel_columns + column) * 2 + i % 2) * 4 + i % 16 / 4;
}

float value_of(const CodePanelsSpec& spec, uint8_t code) {
  switch (spec.codes) {
    case PanelCodes::i8:
      return float(int8_t(code));
    case PanelCodes::u8:
      return float(code);
    case PanelCodes::e4m3:
      return widen(e4m3{code});
    case PanelCodes::table4:
      return spec.table[code];
  }
  __builtin_unreachable();
}

// The least size of code - zero that is not 0; 0: unknown.
float least_code(const CodePanelsSpec& spec, const std::vector<float>& zeros) {
  const auto is_whole = [](float x) { return std::nearbyint(x) == x && std::fabs(x) < 0x1p16f; };
  if (spec.shift != CodeShift::none && !std::ranges::all_of(zeros, is_whole)) return 0;
  if (spec.codes == PanelCodes::i8 || spec.codes == PanelCodes::u8) return 1;
  if (spec.codes == PanelCodes::e4m3) return spec.shift == CodeShift::none ? 0x1p-9f : 0;
  float least = INFINITY;
  for (const float x : spec.table) {
    if (spec.shift != CodeShift::none && !is_whole(x)) return 0;
    if (x != 0) least = std::min(least, std::fabs(x));
  }
  return least;
}

bool has_normal_values(const CodePanelsLayout& layout, const std::vector<float>& scales,
                       const std::vector<float>& shifts) {
  constexpr float normal = 0x1p-120f, large = 0x1p120f;  // with room for what a value is multiplied by
  const CodePanelsSpec& spec = layout.spec;
  if (layout.k % spec.unit() != 0 || std::fabs(spec.factor) < 0x1p-20f || std::fabs(spec.factor) > 1) return false;
  // Whole codes, and scales and offsets that are multiples of 2^-24: so are the values.
  if (spec.shift == CodeShift::offsets) {
    const auto is_multiple = [](float x) {
      return std::fabs(x) < large / 512 && std::nearbyint(x * 0x1p24f) == x * 0x1p24f;
    };
    const auto is_code = [](float x) { return std::nearbyint(x) == x && std::fabs(x) < 256; };
    return spec.codes != PanelCodes::e4m3 &&
           (spec.codes != PanelCodes::table4 || std::ranges::all_of(spec.table, is_code)) &&
           std::ranges::all_of(scales, is_multiple) && std::ranges::all_of(shifts, is_multiple);
  }
  const float least = least_code(spec, shifts) * std::fabs(spec.factor);
  return std::ranges::all_of(
      scales, [&](float x) { return x == 0 || (std::fabs(x) * least >= normal && std::fabs(x) < large / 512); });
}

}  // namespace

CodePanels::CodePanels(Executor& executor, const PanelSource& from, int64_t n, int64_t k, const CodePanelsSpec& spec) {
  check(spec.fits_layout(), "code panels: groups of ", spec.group, " are not a multiple of ", spec.unit());
  const int64_t padded_k = round_up(k, spec.unit());
  layout_.spec = spec;
  layout_.n = n, layout_.k = k;
  layout_.group = spec.group > 0 && !spec.is_ordered() ? spec.group : std::max(padded_k, spec.unit());
  layout_.groups = spec.is_ordered() ? std::ranges::max(spec.group_of_k) + 1 : divide_up(k, layout_.group);
  const int64_t groups = layout_.groups;
  const bool shifted = spec.shift != CodeShift::none;
  std::vector<float> scales(size_t(n * groups)), shifts(size_t(shifted ? n * groups : 0));
  executor.run(n, [&](int64_t row) {
    for (int64_t g = 0; g < groups; ++g) {
      scales[size_t(row * groups + g)] = from.scale(row, g);
      if (shifted) shifts[size_t(row * groups + g)] = from.shift(row, g);
    }
  });
  layout_.numbers = narrowest_of(scales, shifts);
  layout_.is_normal = has_normal_values(layout_, scales, shifts);
  data_ = allocate<uint8_t>(bytes());
  layout_.data = data_.get();
  executor.run(divide_up(n, panel_columns), [&](int64_t panel) {
    thread_local Scratch<uint8_t> of_thread;
    const int64_t first = panel * panel_columns, count = std::min(panel_columns, n - first);
    uint8_t* const rows = of_thread.at_least(count * k);
    from.codes(first, count, rows);
    std::memset(data_.get() + panel * layout_.panel_bytes(), 0, size_t(layout_.panel_bytes()));
    for (int64_t g = 0; g < groups; ++g) {
      uint8_t* const head = const_cast<uint8_t*>(layout_.group_at(panel, g));
      for (int64_t c = 0; c < count; ++c) {
        const size_t index = size_t((first + c) * groups + g);
        put_number(layout_.numbers, head, c, scales[index]);
        if (shifted) put_number(layout_.numbers, head + layout_.bytes_of_numbers(), c, shifts[index]);
      }
    }
    for (int64_t stream = 0; stream < layout_.streams(); ++stream) {
      uint8_t* const codes = const_cast<uint8_t*>(layout_.codes_at(panel, stream));
      const int64_t begin = stream * layout_.group, length = std::min(layout_.group, k - begin);
      for (int64_t c = 0; c < count; ++c) {
        const uint8_t* const row = rows + c * k + begin;
        for (int64_t i = 0; i < length; ++i)
          codes[byte_of(layout_, i, c)] |=
              uint8_t(spec.codes == PanelCodes::table4 ? row[i] << (i % 4 / 2 * 4) : row[i]);
      }
    }
  });
}

int64_t CodePanels::bytes() const { return divide_up(layout_.n, panel_columns) * layout_.panel_bytes(); }

void unpack_panels(const CodePanels& panels, uint8_t* codes, float* scales) {
  const CodePanelsLayout& layout = panels.layout();
  const bool table4 = layout.spec.codes == PanelCodes::table4;
  for (int64_t row = 0; row < layout.n; ++row)
    for (int64_t i = 0; i < layout.k; ++i) {
      const int64_t column = row % panel_columns, g = layout.group_of(i), in_stream = i % layout.group;
      const uint8_t byte = layout.codes_at(row / panel_columns, i / layout.group)[byte_of(layout, in_stream, column)];
      codes[row * layout.k + i] = table4 ? uint8_t(byte >> (in_stream % 4 / 2 * 4) & 15) : byte;
      scales[row * layout.groups + g] = number_at(layout.numbers, layout.group_at(row / panel_columns, g), column);
    }
}

const CodePanels* panels_of(const EncodedWeight& w) {
  return w.first % panel_columns == 0 && w.step == 1 ? dynamic_cast<const CodePanels*>(w.rows.get()) : nullptr;
}

void CodePanels::decode(int64_t first, int64_t step, int64_t count, float* to) const {
  const CodePanelsSpec& spec = layout_.spec;
  for (int64_t r = 0; r < count; ++r)
    for (int64_t i = 0; i < layout_.k; ++i) {
      const int64_t row = first + r * step, column = row % panel_columns, in_stream = i % layout_.group;
      const int64_t panel = row / panel_columns;
      const uint8_t* const head = layout_.group_at(panel, layout_.group_of(i));
      const uint8_t byte = layout_.codes_at(panel, i / layout_.group)[byte_of(layout_, in_stream, column)];
      const bool table4 = spec.codes == PanelCodes::table4;
      float value = value_of(spec, table4 ? byte >> (in_stream % 4 / 2 * 4) & 15 : byte);
      const uint8_t* const shifts = head + layout_.bytes_of_numbers();
      if (spec.shift == CodeShift::zeros) value -= number_at(layout_.numbers, shifts, column);
      value *= number_at(layout_.numbers, head, column);
      if (spec.shift == CodeShift::offsets) value += number_at(layout_.numbers, shifts, column);
      if (spec.factor != 1) value *= spec.factor;
      if (spec.rounding == ValueRounding::bf16) value = widen(narrow(value));
      if (spec.rounding == ValueRounding::f16) value = rounded_to_half(value);
      to[r * layout_.k + i] = value;
    }
}

}  // namespace easydel::kernels
