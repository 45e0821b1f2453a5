// Packs quantized weights and cuts their products into parts; the parts themselves are quantized_loops.h.
#include "easydel/kernels/quantized.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/quantized_layout.h"

namespace easydel::kernels {

namespace {

// The shape of the packed weight.
QuantizedStep layout_of(const QuantizedWeight& w) {
  const bool bytes = w.spec().codes == Codes::bytes;
  QuantizedStep step;
  step.k = w.k(), step.groups = w.groups();
  step.block = bytes && w.spec().group % 64 == 0 ? 64 : k_block;
  step.padded_k = round_up(w.k(), step.block);
  step.group = w.spec().group > 0 ? w.spec().group : step.padded_k;
  step.k_bytes = bytes ? panel_columns : panel_columns / 2;
  step.panel_bytes = step.groups * scale_bytes + step.padded_k * step.k_bytes;
  step.panels = w.data();
  step.result.n = w.n();
  return step;
}

float* scale_at(const QuantizedStep& step, int64_t row, int64_t g) {
  uint8_t* const group = const_cast<uint8_t*>(step.group_at(row / panel_columns, g));
  return reinterpret_cast<float*>(group) + row % panel_columns;
}

// Where code k of a row is: a byte, or with table4 the byte's low or high half.
uint8_t* code_at(const QuantizedStep& step, int64_t row, int64_t k) {
  const int64_t g = k / step.group, i = k % step.group, c = row % panel_columns;
  const int64_t tile = tile_columns * step.block * step.k_bytes / panel_columns;
  uint8_t* const block = const_cast<uint8_t*>(step.group_at(row / panel_columns, g)) + scale_bytes +
                         i / step.block * step.block * step.k_bytes + c / tile_columns * tile;
  const int64_t j = i % step.block;
  const bool bytes = step.k_bytes == panel_columns;
  return block + (j / (bytes ? 4 : 8) * tile_columns + c % tile_columns) * 4 + (bytes ? j % 4 : nibble_of(j) / 2);
}

// A code as pack_codes has it.
uint8_t code_of(const QuantizedStep& step, int64_t row, int64_t k) {
  const uint8_t byte = *code_at(step, row, k);
  if (step.k_bytes == panel_columns) return uint8_t(byte - 128);
  return nibble_of(k) % 2 ? byte >> 4 : byte & 15;
}

// Writes the codes of a row, which lie side by side, 0 behind the last k.
void put_row(const QuantizedStep& step, int64_t row, const uint8_t* codes) {
  const bool bytes = step.k_bytes == panel_columns;
  const int64_t c = row % panel_columns, line = tile_columns * 4;
  const int64_t tile = tile_columns * step.block * step.k_bytes / panel_columns;
  for (int64_t g = 0; g < step.groups; ++g) {
    uint8_t* to = const_cast<uint8_t*>(step.group_at(row / panel_columns, g)) + scale_bytes + c / tile_columns * tile +
                  c % tile_columns * 4;
    for (int64_t k = 0; k < step.length_of(g); k += step.block, to += step.block * step.k_bytes) {
      uint8_t* at = to;
      for (int64_t j = 0; j < step.block; j += bytes ? 4 : 8, at += line, codes += bytes ? 4 : 8) {
        if (bytes) {
          for (int64_t i = 0; i < 4; ++i) at[i] = uint8_t(codes[i] + 128);
          continue;
        }
        uint32_t all = 0;
        for (int64_t i = 0; i < 8; ++i) all |= uint32_t(codes[i]) << 4 * nibble_of(i);
        std::memcpy(at, &all, sizeof all);
      }
    }
  }
}

// Sets every code that no element has, and its scale.
void clear(const QuantizedStep& step, int64_t panel) {
  const int fill = step.k_bytes == panel_columns ? 128 : 0;
  for (int64_t g = 0; g < step.groups; ++g) {
    uint8_t* const group = const_cast<uint8_t*>(step.group_at(panel, g));
    std::memset(group, 0, scale_bytes);
    std::memset(group + scale_bytes, fill, size_t(step.length_of(g) * step.k_bytes));
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
  data_ = allocate<uint8_t>(bytes());
}

int64_t QuantizedWeight::groups() const { return spec_.group > 0 ? divide_up(k_, spec_.group) : 1; }

int64_t QuantizedWeight::bytes() const { return divide_up(n_, panel_columns) * layout_of(*this).panel_bytes; }

QuantizedWeight pack_codes(Executor& executor, const uint8_t* codes, const float* scales, int64_t n, int64_t k,
                           const QuantizedSpec& spec) {
  QuantizedWeight w(n, k, spec);
  const QuantizedStep step = layout_of(w);
  executor.run(divide_up(n, panel_columns), [&](int64_t panel) {
    thread_local Scratch<uint8_t> of_thread;
    uint8_t* const row_codes = of_thread.at_least(step.padded_k);
    std::memset(row_codes + k, 0, size_t(step.padded_k - k));
    clear(step, panel);
    for (int64_t row = panel * panel_columns; row < std::min(n, (panel + 1) * panel_columns); ++row) {
      for (int64_t g = 0; g < step.groups; ++g) *scale_at(step, row, g) = scales[row * step.groups + g];
      std::memcpy(row_codes, codes + row * k, size_t(k));
      put_row(step, row, row_codes);
    }
  });
  return w;
}

void unpack_codes(Executor& executor, const QuantizedWeight& w, uint8_t* codes, float* scales) {
  const QuantizedStep step = layout_of(w);
  executor.run(w.n(), [&](int64_t row) {
    for (int64_t g = 0; g < step.groups; ++g) scales[row * step.groups + g] = *scale_at(step, row, g);
    for (int64_t i = 0; i < w.k(); ++i) codes[row * w.k() + i] = code_of(step, row, i);
  });
}

QuantizedWeight quantize(Executor& executor, Input from, int64_t n, int64_t k, const QuantizedSpec& spec) {
  QuantizedWeight w(n, k, spec);
  const QuantizedStep step = layout_of(w);
  const bool bytes = spec.codes == Codes::bytes;
  const float low = spec.table.front(), high = spec.table.back();
  std::array<float, 15> between{};
  for (size_t i = 0; i < between.size(); ++i)
    between[i] = float((double(spec.table[i]) + double(spec.table[i + 1])) / 2);
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
        const float most = of_greatest_size(x + begin, count), size = std::fabs(most);
        const float scale = bytes ? size / 127 : high == -low ? size / high : most / (high > -low ? high : low);
        *scale_at(step, row, g) = scale;
        const float divisor = scale == 0 ? 1 : scale;  // then every value is 0
        if (bytes)
          to_bytes(x + begin, count, divisor, codes + begin);
        else
          to_codes(x + begin, count, divisor, between, codes + begin);
      }
      put_row(step, row, codes);
    }
  });
  return w;
}

void dequantize(Executor& executor, const QuantizedWeight& w, Output to) {
  const QuantizedStep step = layout_of(w);
  executor.run(w.n(), [&](int64_t row) {
    for (int64_t i = 0; i < w.k(); ++i) {
      const uint8_t code = code_of(step, row, i);
      const float value = w.spec().codes == Codes::bytes ? float(int8_t(code)) : w.spec().table[code];
      const float x = value * *scale_at(step, row, i / step.group);
      if (to.dtype == DType::f32)
        *static_cast<float*>(to.at(row, i)) = x;
      else
        *static_cast<bf16*>(to.at(row, i)) = narrow(x);
    }
  });
}

void product(Executor& executor, const QuantizedWeight& w, Input x, int64_t m, Output y, const float* bias,
             AccumulationOrder order) {
  if (m == 0 || w.n() == 0) return;
  executor.will_read(w.data(), w.bytes());
  const Loops& isa = loops();
  const bool bytes = w.spec().codes == Codes::bytes;
  QuantizedStep step = layout_of(w);
  step.result.m = m, step.result.y = y, step.result.bias = bias;
  step.order = bytes ? AccumulationOrder::fp32_chain : order;
  const bool rounded = step.order != AccumulationOrder::fp32_chain,
             pairs = step.order == AccumulationOrder::bf16_pairs && isa.quantized.multiply_code_pairs;
  // With fewer rows the vectors are as fast.
  const bool tiles = bytes ? isa.quantized.multiply_byte_tiles && m > block_rows
                           : isa.quantized.multiply_code_tiles && step.order == AccumulationOrder::bf16_tile && m > 4;
  if (pairs) step.result.rows_per_block = equal_block_rows(m);
  if (tiles) step.result.rows_per_block = tile_rows;
  CodeTable table = w.spec().table;
  if (rounded)
    for (float& value : table) value = widen(narrow(value));
  step.table = table.data();

  thread_local Scratch<uint8_t> of_caller;
  const int64_t of_k = bytes ? 1 : pairs || tiles ? 2 : 4, code_bytes = m * step.padded_k * of_k;
  uint8_t* const left = of_caller.at_least(round_up(code_bytes, 64) + (bytes ? m * (step.groups + 1) * 4 : 0));
  if (bytes) {
    int8_t* const codes = reinterpret_cast<int8_t*>(left);
    int32_t* const sums = reinterpret_cast<int32_t*>(left + round_up(code_bytes, 64));
    float* const scales = reinterpret_cast<float*>(sums + m * step.groups);
    (tiles ? step.x_tiles : step.x) = codes, step.x_sums = sums, step.x_scales = scales;
    executor.run(divide_up(m, tile_rows), [&](int64_t part) {
      const int64_t first = part * tile_rows, rows = std::min(tile_rows, m - first);
      thread_local Scratch<int8_t> row_of_thread;
      int8_t* const row = tiles ? row_of_thread.at_least(step.padded_k) : nullptr;
      for (int64_t r = first; r < first + rows; ++r) {
        isa.quantized.pack_byte_row(step, x, r, tiles ? row : codes + r * step.padded_k, sums + r * step.groups,
                                    scales + r);
        if (!tiles) continue;
        int8_t* const to = codes + first * step.padded_k + (r - first) * step.block;
        for (int64_t k = 0; k < step.padded_k; k += step.block) std::memcpy(to + k * rows, row + k, size_t(step.block));
      }
    });
  } else {
    if (pairs)
      step.a_pairs = reinterpret_cast<const uint32_t*>(left);
    else if (tiles)
      step.a_tiles = reinterpret_cast<const bf16*>(left);
    else
      step.a = reinterpret_cast<const float*>(left);
    executor.run(divide_up(m, step.result.rows_per_block), [&](int64_t block) {
      const int64_t first = block * step.result.rows_per_block, rows = std::min(step.result.rows_per_block, m - first);
      uint8_t* const to = left + first * step.padded_k * of_k;
      if (pairs)
        isa.product.pairs.pack_rows(x, first, rows, step.k, step.padded_k / 2, reinterpret_cast<uint32_t*>(to));
      else if (tiles)
        isa.product.tiles.pack_rows(x, first, rows, step.k, reinterpret_cast<bf16*>(to));
      else
        isa.product.pack_rows(x, first, rows, step.k, step.padded_k, rounded, reinterpret_cast<float*>(to));
    });
  }

  // Near 1 MiB of the left side goes through all panels before the next; parts of some 100 us.
  const int64_t row_bytes = std::max<int64_t>(1, step.padded_k * of_k), block = step.result.rows_per_block;
  const int64_t chunk = std::max<int64_t>(8, (1 << 20) / row_bytes / block) * block;
  const int64_t panels = divide_up(w.n(), panel_columns), chunks = divide_up(m, chunk);
  const int64_t speed = tiles ? 8 : bytes ? 4 : pairs ? 2 : 1;
  const int64_t work = step.padded_k * panel_columns * (std::min(chunk, m) + 16) / speed;
  int64_t together = std::clamp<int64_t>((int64_t(1) << 23) / std::max<int64_t>(work, 1), 1,
                                         divide_up(panels * chunks, 3 * executor.size()));
  if (pairs && m <= 4 && step.groups <= 2) together = round_up(together, 4);  // which are read side by side
  const int64_t parts = divide_up(panels, together);
  const auto one = bytes   ? tiles ? isa.quantized.multiply_byte_tiles : isa.quantized.multiply_bytes
                   : tiles ? isa.quantized.multiply_code_tiles
                           : isa.quantized.multiply_codes;
  executor.run(chunks * parts, [&](int64_t part) {
    const int64_t first = part / parts * chunk, rows = std::min(chunk, m - first);
    const int64_t end = std::min(panels, (part % parts + 1) * together);
    const auto all = [&] {
      const int64_t begin = part % parts * together;
      if (pairs) return isa.quantized.multiply_code_pairs(step, begin, end - begin, first, rows);
      for (int64_t panel = begin; panel < end; ++panel) one(step, panel, first, rows);
    };
    if (rounded) {
      const FlushDenormals flush;
      all();
    } else {
      all();
    }
  });
}

}  // namespace easydel::kernels
