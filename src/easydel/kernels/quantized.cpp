// Packs quantized weights and runs the tasks of their products; the loops are quantized_loops.h.
#include "easydel/kernels/quantized.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/joint_products.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/product_plan.h"
#include "easydel/kernels/quantized_layout.h"
#include "easydel/kernels/quantized_rows.h"
#include "easydel/kernels/rounded.h"

namespace easydel::kernels {

namespace {

// The shape of the packed weight.
QuantizedStep layout_of(const QuantizedWeight& w) {
  QuantizedStep step;
  step.codes = w.spec().codes;
  step.k = w.k(), step.groups = w.groups();
  step.block = meets_bytes(step.codes) && w.spec().group % 64 == 0 ? 64 : k_block;
  step.padded_k = round_up(w.k(), step.block);
  step.group = w.spec().group > 0 ? w.spec().group : step.padded_k;
  step.k_bytes = step.codes == Codes::bytes ? panel_columns : panel_columns / 2;
  step.numbers = w.spec().numbers, step.shift = w.spec().shift;
  step.scale_bytes = panel_columns * bytes_of(step.numbers);
  step.head_bytes = step.scale_bytes * (step.shift == CodeShift::none ? 1 : 2);
  step.panel_bytes = step.groups * step.head_bytes + step.padded_k * step.k_bytes;
  step.panels = w.data();
  step.result.n = w.n();
  return step;
}

float scale_of(const QuantizedStep& step, int64_t row, int64_t g) {
  return number_at(step.numbers, step.group_at(row / panel_columns, g), row % panel_columns);
}

void set_scale(const QuantizedStep& step, int64_t row, int64_t g, float scale) {
  put_number(step.numbers, const_cast<uint8_t*>(step.group_at(row / panel_columns, g)), row % panel_columns, scale);
}

void set_shift(const QuantizedStep& step, int64_t row, int64_t g, float shift) {
  uint8_t* const group = const_cast<uint8_t*>(step.group_at(row / panel_columns, g));
  put_number(step.numbers, group + step.scale_bytes, row % panel_columns, shift);
}

// Where code k of a row is: a byte, or the byte's low or high half.
uint8_t* code_at(const QuantizedStep& step, int64_t row, int64_t k) {
  const int64_t g = k / step.group, i = k % step.group, c = row % panel_columns;
  const int64_t tile = tile_columns * step.block * step.k_bytes / panel_columns;
  uint8_t* const block = const_cast<uint8_t*>(step.codes_at(row / panel_columns, g)) +
                         i / step.block * step.block * step.k_bytes + c / tile_columns * tile;
  const int64_t j = step.codes == Codes::nibbles ? i % (step.block / 2) : i % step.block;
  const bool table4 = step.codes == Codes::table4;
  return block + (j / (table4 ? 8 : 4) * tile_columns + c % tile_columns) * 4 + (table4 ? nibble_of(j) / 2 : j % 4);
}

// A code as pack_codes has it.
uint8_t code_of(const QuantizedStep& step, int64_t row, int64_t k) {
  const uint8_t byte = *code_at(step, row, k);
  if (step.codes == Codes::bytes) return uint8_t(byte - 128);
  if (step.codes == Codes::table4) return nibble_of(k) % 2 ? byte >> 4 : byte & 15;
  return uint8_t((k % step.group % step.block < step.block / 2 ? byte & 15 : byte >> 4) - 8);
}

// Writes what the codes of a row in one group stand for, of bytes and nibbles; those of table4: code_value_loops.h.
template <class T>
void write_values(const QuantizedStep& step, int64_t row, int64_t g, int64_t length, T* to) {
  const float scale = scale_of(step, row, g);
  T scaled[16], all[4];
  for (int code = 0; code < 16; ++code) put_rounded(float(code - 8) * scale, scaled[code]);
  const uint8_t* at = code_at(step, row, g * step.group);
  for (int64_t k = 0; k < length; k += step.block, at += step.block * step.k_bytes) {
    const auto put = [&](int64_t j) {
      std::memcpy(to + k + j, all, size_t(std::clamp<int64_t>(length - k - j, 0, 4)) * sizeof(T));
    };
    const uint8_t* line = at;
    const auto next_word = [&] {  // four bytes
      uint32_t word;
      std::memcpy(&word, line, sizeof word);
      line += tile_columns * 4;
      return word;
    };
    const auto halves = [&](uint32_t word, int shift) {
      for (int64_t i = 0; i < 4; ++i) all[i] = scaled[word >> (8 * i + shift) & 15];
    };
    if (step.codes == Codes::bytes)
      for (int64_t j = 0; j < step.block; j += 4) {
        const uint32_t word = next_word();
        for (int64_t i = 0; i < 4; ++i) put_rounded(float(int(word >> 8 * i & 255) - 128) * scale, all[i]);
        put(j);
      }
    else
      for (int64_t j = 0; j < step.block / 2; j += 4) {
        const uint32_t word = next_word();
        halves(word, 0), put(j);
        halves(word, 4), put(step.block / 2 + j);
      }
  }
}

// Writes the codes of a row, which lie side by side, 0 behind the last k.
void put_row(const QuantizedStep& step, int64_t row, const uint8_t* codes) {
  const int64_t c = row % panel_columns, line = tile_columns * 4;
  const int64_t tile = tile_columns * step.block * step.k_bytes / panel_columns;
  for (int64_t g = 0; g < step.groups; ++g) {
    uint8_t* to =
        const_cast<uint8_t*>(step.codes_at(row / panel_columns, g)) + c / tile_columns * tile + c % tile_columns * 4;
    for (int64_t k = 0; k < step.length_of(g); k += step.block, to += step.block * step.k_bytes) {
      uint8_t* at = to;
      switch (step.codes) {
        case Codes::bytes:
          for (int64_t j = 0; j < step.block; j += 4, at += line)
            for (int64_t i = 0; i < 4; ++i) at[i] = uint8_t(codes[j + i] + 128);
          break;
        case Codes::table4:
          for (int64_t j = 0; j < step.block; j += 8, at += line) {
            uint32_t all = 0;
            for (int64_t i = 0; i < 8; ++i) all |= uint32_t(codes[j + i]) << 4 * nibble_of(i);
            std::memcpy(at, &all, sizeof all);
          }
          break;
        case Codes::nibbles:
          for (int64_t j = 0; j < step.block / 2; j += 4, at += line)
            for (int64_t i = 0; i < 4; ++i)
              at[i] = uint8_t((uint8_t(codes[j + i] + 8) & 15) | uint8_t(codes[j + step.block / 2 + i] + 8) << 4);
      }
      codes += step.block;
    }
  }
}

// Sets every code that no element has, and its scale.
void clear(const QuantizedStep& step, int64_t panel) {
  const int fill = step.codes == Codes::bytes ? 128 : step.codes == Codes::nibbles ? 0x88 : 0;
  for (int64_t g = 0; g < step.groups; ++g) {
    uint8_t* const group = const_cast<uint8_t*>(step.group_at(panel, g));
    std::memset(group, 0, size_t(step.head_bytes));
    std::memset(group + step.head_bytes, fill, size_t(step.length_of(g) * step.k_bytes));
  }
}

// A row in fp32: as it is, or widened into `room`.
const float* row_of(Input w, int64_t row, int64_t k, float* room) {
  if (w.dtype == DType::f32) return static_cast<const float*>(w.at(row));
  const bf16* const from = static_cast<const bf16*>(w.at(row));
  for (int64_t i = 0; i < k; ++i) room[i] = widen(from[i]);
  return room;
}

float of_greatest_size(const float* x, int64_t count) {
  float high = 0, low = 0;
  for (int64_t i = 0; i < count; ++i) high = std::max(high, x[i]), low = std::min(low, x[i]);
  return high >= -low ? high : low;
}

// x / scale to the nearest whole number, of two as near the even one.
void to_bytes(const float* x, int64_t count, float scale, uint8_t* codes) {
  constexpr float whole = 0x1.8p23f;  // beside it fp32 has no fractions
  for (int64_t i = 0; i < count; ++i)
    codes[i] = uint8_t(int8_t(int(std::clamp(x[i] / scale, -127.0f, 127.0f) + whole - whole)));
}

// x / scale to the nearest number of an ascending table, of two as near the lower one.
void to_codes(const float* x, int64_t count, float scale, const std::array<float, 15>& between, uint8_t* codes) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = x[i] / scale;
    int code = 0;
    for (const float edge : between) code += value > edge;
    codes[i] = uint8_t(code);
  }
}

}  // namespace

const CodeTable& nf4_table() {
  static constexpr CodeTable table = {-1.0f,
                                      -0.6961928009986877f,
                                      -0.5250730514526367f,
                                      -0.39491748809814453f,
                                      -0.28444138169288635f,
                                      -0.18477343022823334f,
                                      -0.09105003625154495f,
                                      0.0f,
                                      0.07958029955625534f,
                                      0.16093020141124725f,
                                      0.24611230194568634f,
                                      0.33791524171829224f,
                                      0.44070982933044434f,
                                      0.5626170039176941f,
                                      0.7229568362236023f,
                                      1.0f};
  return table;
}

const CodeTable& q4_table() {
  static constexpr CodeTable table = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  return table;
}

QuantizedWeight::QuantizedWeight(int64_t n, int64_t k, const QuantizedSpec& spec) : n_(n), k_(k), spec_(spec) {
  check(k <= 131072, "quantized weight: ", k, " columns; sums of 32 bits hold 131072");
  check(spec.group % k_block == 0 && spec.group >= 0, "quantized weight: groups of ", spec.group,
        " are not a multiple of 32");
  check(spec.shift == CodeShift::none || spec.codes == Codes::table4, "quantized weight: only codes of a table shift");
  data_ = allocate<uint8_t>(bytes());
}

int64_t QuantizedWeight::groups() const { return spec_.group > 0 ? divide_up(k_, spec_.group) : 1; }

int64_t QuantizedWeight::bytes() const { return divide_up(n_, panel_columns) * layout_of(*this).panel_bytes; }

static_assert(rows_of_panel == panel_columns);

QuantizedWeight rows_of(const QuantizedWeight& w, int64_t first, int64_t n) {
  check(first % rows_of_panel == 0 && first + n <= w.n(), "quantized weight: rows ", first, " to ", first + n,
        " do not begin with a panel");
  QuantizedWeight out(n, w.k(), w.spec());
  const QuantizedStep step = layout_of(out);
  std::memcpy(out.data(), w.data() + first / rows_of_panel * step.panel_bytes, size_t(out.bytes()));
  // Rows of the last panel that are not among them are missing ones.
  for (int64_t row = n; row < round_up(n, rows_of_panel); ++row)
    for (int64_t g = 0; g < step.groups; ++g) set_scale(step, row, g, 0);
  return out;
}

QuantizedWeight pack_codes(Executor& executor, const uint8_t* codes, const float* scales, const float* shifts,
                           int64_t n, int64_t k, const QuantizedSpec& given) {
  QuantizedSpec spec = given;
  const bool shifted = spec.shift != CodeShift::none;
  const size_t count = size_t(n * (spec.group > 0 ? divide_up(k, spec.group) : 1));
  spec.numbers = narrowest_of({scales, count}, {shifts, shifted ? count : 0});
  QuantizedWeight w(n, k, spec);
  const QuantizedStep step = layout_of(w);
  executor.run(divide_up(n, panel_columns), [&](int64_t panel) {
    thread_local Scratch<uint8_t> of_thread;
    uint8_t* const row_codes = of_thread.at_least(step.padded_k);
    std::memset(row_codes + k, 0, size_t(step.padded_k - k));
    clear(step, panel);
    for (int64_t row = panel * panel_columns; row < std::min(n, (panel + 1) * panel_columns); ++row) {
      for (int64_t g = 0; g < step.groups; ++g) {
        set_scale(step, row, g, scales[row * step.groups + g]);
        if (shifted) set_shift(step, row, g, shifts[row * step.groups + g]);
      }
      std::memcpy(row_codes, codes + row * k, size_t(k));
      put_row(step, row, row_codes);
    }
  });
  return w;
}

void unpack_codes(Executor& executor, const QuantizedWeight& w, uint8_t* codes, float* scales) {
  const QuantizedStep step = layout_of(w);
  executor.run(w.n(), [&](int64_t row) {
    for (int64_t g = 0; g < step.groups; ++g) scales[row * step.groups + g] = scale_of(step, row, g);
    for (int64_t i = 0; i < w.k(); ++i) codes[row * w.k() + i] = code_of(step, row, i);
  });
}

QuantizedWeight quantize(Executor& executor, Input from, int64_t n, int64_t k, const QuantizedSpec& given) {
  QuantizedSpec spec = given;
  spec.numbers = CodeNumbers::f32;  // scales are quotients
  check(spec.shift == CodeShift::none, "quantize: codes are made without zeros");
  QuantizedWeight w(n, k, spec);
  const QuantizedStep step = layout_of(w);
  const bool bytes = spec.codes == Codes::bytes;
  const CodeTable& table = spec.codes == Codes::nibbles ? q4_table() : spec.table;
  const float low = table.front(), high = table.back();
  std::array<float, 15> between{};
  for (size_t i = 0; i < between.size(); ++i) between[i] = float((double(table[i]) + double(table[i + 1])) / 2);
  executor.run(divide_up(n, panel_columns), [&](int64_t panel) {
    thread_local Scratch<uint8_t> codes_of_thread;
    thread_local Scratch<float> floats_of_thread;
    uint8_t* const codes = codes_of_thread.at_least(step.padded_k);
    float* const room = floats_of_thread.at_least(k);
    std::memset(codes + k, 0, size_t(step.padded_k - k));
    clear(step, panel);
    for (int64_t row = panel * panel_columns; row < std::min(n, (panel + 1) * panel_columns); ++row) {
      const float* const x = row_of(from, row, k, room);
      for (int64_t g = 0; g < step.groups; ++g) {
        const int64_t begin = g * step.group, count = std::min(k - begin, step.group);
        const float extreme = of_greatest_size(x + begin, count), size = std::fabs(extreme);
        const float scale = bytes ? size / 127 : high == -low ? size / high : extreme / (high > -low ? high : low);
        set_scale(step, row, g, scale);
        const float divisor = scale == 0 ? 1 : scale;  // then every value is 0
        if (bytes)
          to_bytes(x + begin, count, divisor, codes + begin);
        else
          to_codes(x + begin, count, divisor, between, codes + begin);
      }
      if (spec.codes == Codes::nibbles)
        for (int64_t i = 0; i < k; ++i) codes[i] = uint8_t(codes[i] - 8);
      put_row(step, row, codes);
    }
  });
  return w;
}

void dequantize(Executor& executor, const QuantizedWeight& w, Output to) { dequantize_rows(executor, w, 0, w.n(), to); }

void dequantize_rows(Executor& executor, const QuantizedWeight& w, int64_t first, int64_t count, Output to) {
  QuantizedStep step = layout_of(w);
  step.table = w.spec().table.data();
  const Loops& isa = loops();
  const int64_t begin = first / panel_columns, end = divide_up(first + count, panel_columns);
  executor.run(count == 0 ? 0 : end - begin, [&](int64_t task) {
    const int64_t panel = begin + task, top = std::max(first, panel * panel_columns);
    const int64_t rows = std::min(first + count, (panel + 1) * panel_columns) - top;
    if (step.codes == Codes::table4)
      return isa.quantized.write_values(step, top, rows, {to.at(top - first), to.dtype, to.stride});
    // A group of the panel stays in L1 while its rows are read one by one.
    for (int64_t g = 0; g < step.groups; ++g)
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t k = g * step.group, length = std::min(step.group, w.k() - k);
        void* const out = to.at(top + r - first, k);
        if (to.dtype == DType::f32)
          write_values(step, top + r, g, length, static_cast<float*>(out));
        else
          write_values(step, top + r, g, length, static_cast<bf16*>(out));
      }
  });
}

void product(Executor& executor, const QuantizedWeight& w, Input x, int64_t m, Output y, const float* bias,
             AccumulationOrder order) {
  const JointPart<QuantizedWeight> only{&w, y, bias};
  products(executor, {&only, 1}, x, m, order);
}

void products(Executor& executor, std::span<const JointPart<QuantizedWeight>> parts, Input x, int64_t m,
              AccumulationOrder order) {
  const QuantizedWeight& w = *parts.front().weight;
  for (const auto& part : parts) check(is_joint(w, *part.weight), "joint products: other codes, or other inputs");
  const int64_t panels = panels_of(parts);
  if (m == 0 || panels == 0) return;
  for (const auto& part : parts) executor.will_read(part.weight->data(), part.weight->bytes());
  const Loops& isa = loops();
  const bool bytes = meets_bytes(w.spec().codes);
  QuantizedStep step = layout_of(w);
  const LeftSide left = left_of_codes(bytes, order, matrix_instructions(), m);
  const CodesShape shape{m, panels * panel_columns, step.padded_k, step.groups, bytes, left};
  const CodesPlan plan = plan_codes(shape, executor.size());
  step.result.m = m, step.result.rows_per_block = plan.rows_per_block;
  step.order = bytes ? AccumulationOrder::fp32_chain : order;
  const bool rounded = step.order != AccumulationOrder::fp32_chain;
  CodeTable table = w.spec().table;
  if (rounded)
    for (float& value : table) value = widen(narrow(value));
  step.table = table.data();

  thread_local Scratch<uint8_t> of_caller;
  const int64_t row_bytes = shape.packed_row_bytes(), packed_bytes = round_up(m * row_bytes, 64);
  const bool sums_groups = bytes || step.shift != CodeShift::none;
  uint8_t* const packed = of_caller.at_least(packed_bytes + (sums_groups ? m * (step.groups + 1) * 4 : 0));
  const auto fill = [&](const auto& pack) {
    executor.run(divide_up(m, plan.rows_per_fill), [&](int64_t task) {
      const int64_t first = task * plan.rows_per_fill;
      pack(first, std::min(plan.rows_per_fill, m - first), packed + first * row_bytes);
    });
  };
  if (bytes) {
    int8_t* const codes = reinterpret_cast<int8_t*>(packed);
    int32_t* const sums = reinterpret_cast<int32_t*>(packed + packed_bytes);
    float* const scales = reinterpret_cast<float*>(sums + m * step.groups);
    const bool tiles = left == LeftSide::tiles;
    (tiles ? step.x_tiles : step.x) = codes, step.x_sums = sums, step.x_scales = scales;
    fill([&](int64_t first, int64_t rows, uint8_t* to) {
      thread_local Scratch<int8_t> row_of_thread;
      int8_t* const row = tiles ? row_of_thread.at_least(step.padded_k) : nullptr;
      for (int64_t r = 0; r < rows; ++r) {
        isa.quantized.pack_byte_row(step, x, first + r, tiles ? row : reinterpret_cast<int8_t*>(to) + r * step.padded_k,
                                    sums + (first + r) * step.groups, scales + first + r);
        if (!tiles) continue;
        for (int64_t k = 0; k < step.padded_k; k += step.block)
          std::memcpy(to + k * rows + r * step.block, row + k, size_t(step.block));
      }
    });
  } else if (left == LeftSide::pairs) {
    step.a_pairs = reinterpret_cast<const uint32_t*>(packed);
    fill([&](int64_t first, int64_t rows, uint8_t* to) {
      isa.product.pairs.pack_rows(x, first, rows, step.k, step.padded_k / 2, reinterpret_cast<uint32_t*>(to));
    });
  } else if (left == LeftSide::tiles) {
    step.a_tiles = reinterpret_cast<const bf16*>(packed);
    fill([&](int64_t first, int64_t rows, uint8_t* to) {
      isa.product.tiles.pack_rows(x, first, rows, step.k, reinterpret_cast<bf16*>(to));
    });
  } else {
    step.a = reinterpret_cast<const float*>(packed);
    fill([&](int64_t first, int64_t rows, uint8_t* to) {
      isa.product.pack_rows(x, first, rows, step.k, step.padded_k, rounded, reinterpret_cast<float*>(to));
    });
  }

  if (step.shift != CodeShift::none) {
    float* const sums = reinterpret_cast<float*>(packed + packed_bytes);
    step.group_sums = sums;
    executor.run(m, [&](int64_t row) {
      const auto sum = [&] { isa.quantized.sum_groups(step, x, row, rounded, sums + row * step.groups); };
      if (!rounded) return sum();
      const FlushDenormals flush;
      sum();
    });
  }

  const auto multiply_panel =
      bytes ? left == LeftSide::tiles ? isa.quantized.multiply_byte_tiles : isa.quantized.multiply_bytes
      : left == LeftSide::tiles ? isa.quantized.multiply_code_tiles
                                : isa.quantized.multiply_codes;
  executor.run(plan.tasks(), [&](int64_t task) {
    const int64_t first = task / plan.panel_groups * plan.rows_per_chunk;
    const int64_t rows = std::min(plan.rows_per_chunk, m - first);
    const int64_t begin = task % plan.panel_groups * plan.panels_per_task;
    const int64_t end = std::min(shape.panels(), begin + plan.panels_per_task);
    const auto multiply = [&] {
      each_part(parts, begin, end, [&](const JointPart<QuantizedWeight>& part, int64_t from, int64_t to) {
        QuantizedStep own = step;
        own.panels = part.weight->data();
        own.result.n = part.weight->n(), own.result.y = part.y, own.result.bias = part.bias;
        if (left == LeftSide::pairs) return isa.quantized.multiply_code_pairs(own, from, to - from, first, rows);
        for (int64_t panel = from; panel < to; ++panel) multiply_panel(own, panel, first, rows);
      });
    };
    if (rounded) {
      const FlushDenormals flush;
      multiply();
    } else {
      multiply();
    }
  });
}

}  // namespace easydel::kernels
