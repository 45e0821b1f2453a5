#include "easydel/kernels/quantized.h"

#include <algorithm>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/kernels/half.h"
#include "easydel/kernels/quantized_rows.h"
#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

float flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

struct Kind {
  QuantizedSpec spec;
  AccumulationOrder order = AccumulationOrder::bf16_tile;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const int64_t group : {0, 32, 64, 96}) {
    all.push_back({{Codes::bytes, group, {}}});
    all.push_back({{Codes::nibbles, group, q4_table()}});
    all.push_back({{Codes::table4, group, nf4_table()}, AccumulationOrder::bf16_tile});
    all.push_back({{Codes::table4, group, nf4_table()}, AccumulationOrder::bf16_pairs});
    all.push_back({{Codes::table4, group, nf4_table()}, AccumulationOrder::fp32_chain});
  }
  all.push_back({{Codes::table4, 32, q4_table()}, AccumulationOrder::bf16_tile});
  // Other numbers than fp32, and codes with zeros or offsets.
  for (size_t i = 0, count = all.size(); i < count; ++i) {
    if (all[i].spec.group != 0 && all[i].spec.group != 32) continue;
    for (const CodeNumbers numbers : {CodeNumbers::bf16, CodeNumbers::f16}) {
      all.push_back(all[i]);
      all.back().spec.numbers = numbers;
    }
    if (all[i].spec.codes != Codes::table4) continue;
    all.push_back(all[i]);
    all.back().spec.shift = CodeShift::offsets;
    all.push_back(all[i]);
    all.back().spec.shift = CodeShift::zeros;
    all.back().spec.numbers = CodeNumbers::f16;
  }
  return all;
}

// Those that quantize() makes.
std::vector<Kind> made_kinds() {
  std::vector<Kind> all = kinds();
  std::erase_if(all, [](const Kind& kind) {
    return kind.spec.shift != CodeShift::none || kind.spec.numbers != CodeNumbers::f32;
  });
  return all;
}

std::string text(const Kind& kind) {
  const char *const names[] = {"bytes", "table", "nibbles"}, *const numbers[] = {"", ", bf16 scales", ", fp16 scales"},
                    *const shifts[] = {"", ", zeros", ", offsets"};
  return str(names[int(kind.spec.codes)], " by ", kind.spec.group, " in ", name(kind.order),
             numbers[int(kind.spec.numbers)], shifts[int(kind.spec.shift)]);
}

struct Plain {  // a weight as it is before it is packed
  std::vector<uint8_t> codes;
  std::vector<float> scales, shifts;

  QuantizedWeight packed(Executor& executor, int64_t n, int64_t k, const QuantizedSpec& spec) const {
    return pack_codes(executor, codes.data(), scales.data(), shifts.data(), n, k, spec);
  }
};

Plain plain(const QuantizedSpec& spec, int64_t n, int64_t k, unsigned seed) {
  const int64_t groups = spec.group > 0 ? divide_up(k, spec.group) : 1;
  std::mt19937 generator(seed);
  Plain w{std::vector<uint8_t>(size_t(n * k)), normal(n * groups, seed, 0.1f), {}};
  for (uint8_t& code : w.codes)
    code = spec.codes == Codes::bytes     ? uint8_t(int8_t(int(generator() % 255) - 127))
           : spec.codes == Codes::nibbles ? uint8_t(int(generator() % 16) - 8)
                                          : uint8_t(generator() % 16);
  for (float& scale : w.scales)
    scale = spec.numbers == CodeNumbers::bf16  ? widen(narrow(scale))
            : spec.numbers == CodeNumbers::f16 ? rounded_to_half(scale)
                                               : scale;
  if (spec.shift == CodeShift::offsets) w.shifts = normal(n * groups, seed + 1, 0.3f);
  if (spec.shift == CodeShift::zeros)
    for (int64_t i = 0; i < n * groups; ++i) w.shifts.push_back(float(generator() % 16) + float(i % 2) / 4);
  return w;
}

// The value of code i of row c in group g.
float value_of(const QuantizedSpec& spec, const Plain& w, uint8_t code, int64_t at) {
  float value = meets_bytes(spec.codes) ? float(int8_t(code)) : spec.table[code];
  if (spec.shift == CodeShift::zeros) value -= w.shifts[size_t(at)];
  value *= w.scales[size_t(at)];
  return spec.shift == CodeShift::offsets ? value + w.shifts[size_t(at)] : value;
}

// x of a group, in sixteen chains that are added in pairs.
float sum_of(const float* x, int64_t count, bool rounded) {
  float chain[16] = {};
  for (int64_t i = 0; i < count; ++i) {
    float& one = chain[i % 16];
    one = rounded ? flush(one + flush(widen(narrow(x[i])))) : one + x[i];
  }
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) chain[i] = rounded ? flush(chain[i] + chain[i + half]) : chain[i] + chain[i + half];
  return chain[0];
}

// The contract of quantized.h, written as it reads.
std::vector<float> by_contract(const Kind& kind, const Plain& w, const std::vector<float>& x, int64_t m, int64_t n,
                               int64_t k) {
  const bool bytes = meets_bytes(kind.spec.codes), tiles = kind.order == AccumulationOrder::bf16_tile,
             in_pairs = kind.order == AccumulationOrder::bf16_pairs;
  const int64_t group = kind.spec.group > 0 ? kind.spec.group : round_up(k, 32), groups = divide_up(k, group);
  std::vector<float> y(size_t(m * n));
  for (int64_t r = 0; r < m; ++r) {
    const float* const row = x.data() + r * k;
    float most = 0;
    for (int64_t i = 0; i < k; ++i) most = std::max(most, std::fabs(row[i]));
    if (most < 0x1p-100f) most = 0;
    const float factor = most == 0 ? 0 : 127 / most;
    for (int64_t c = 0; c < n; ++c) {
      float all = 0;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t begin = g * group, end = std::min(round_up(k, 32), begin + group);
        const float scale = w.scales[size_t(c * groups + g)];
        const auto code = [&](int64_t i) { return i < k ? w.codes[size_t(c * k + i)] : uint8_t(0); };
        if (bytes) {
          int64_t sum = 0;
          for (int64_t i = begin; i < std::min(k, end); ++i)
            sum += int64_t(std::nearbyint(row[i] * factor)) * int8_t(code(i));
          all = std::fma(float(sum), scale, all);
          continue;
        }
        float sum = 0;
        for (int64_t block = begin; block < end; block += 32) {
          float chain[2] = {0, 0};
          for (int64_t j = block; j < block + 32; ++j) {
            const int64_t i = in_pairs ? j ^ 1 : j;  // the odd one first
            const float value = kind.spec.table[code(i)], a = i < k ? row[i] : 0;
            const float short_a = flush(widen(narrow(a))), short_value = flush(widen(narrow(value)));
            if (tiles)
              chain[i % 2] = flush(std::fma(short_a, short_value, flush(chain[i % 2])));
            else if (in_pairs)
              sum = flush(std::fma(short_a, short_value, flush(sum)));
            else
              sum = std::fma(a, value, sum);
          }
          if (tiles) sum = flush(sum + flush(chain[0] + chain[1]));
        }
        const bool rounded = tiles || in_pairs;
        all = rounded ? flush(std::fma(sum, flush(scale), all)) : std::fma(sum, scale, all);
        if (kind.spec.shift == CodeShift::none) continue;
        const float given = w.shifts[size_t(c * groups + g)];
        const float shift = kind.spec.shift == CodeShift::zeros ? (0 - given) * scale : given;
        const float of_x = sum_of(row + begin, std::max<int64_t>(0, std::min(k, end) - begin), rounded);
        all = rounded ? flush(std::fma(of_x, flush(shift), all)) : std::fma(of_x, shift, all);
      }
      y[size_t(r * n + c)] = bytes ? all * (most / 127) : all;
    }
  }
  return y;
}

std::vector<float> multiply(Executor& executor, const QuantizedWeight& w, const std::vector<float>& x,
                            AccumulationOrder order) {
  const int64_t m = int64_t(x.size()) / w.k();
  std::vector<float> y(size_t(m * w.n()), 77.0f);
  product(executor, w, {x.data(), w.k()}, m, {y.data(), w.n()}, nullptr, order);
  return y;
}

TEST(QuantizedProduct, HasTheBitsOfTheContractOnEveryInstructionSet) {
  struct Shape {
    int64_t m, n, k;
  };
  for (const Shape s :
       {Shape{1, 1, 1}, {2, 33, 31}, {3, 40, 130}, {4, 7, 64}, {13, 64, 97}, {30, 35, 600}, {2, 225, 100}})
    for (const Kind& kind : kinds())
      for (const bool rough : {false, true}) {
        SCOPED_TRACE(str(text(kind), " ", s.m, " x ", s.n, " x ", s.k, rough ? ", rough" : ""));
        const auto x = rough ? hostile(s.m * s.k, 1) : normal(s.m * s.k, 1);
        const Plain w = plain(kind.spec, s.n, s.k, 2);
        const auto expected = by_contract(kind, w, x, s.m, s.n, s.k);
        on_every_isa([&] {
          const auto packed = w.packed(serial_executor(), s.n, s.k, kind.spec);
          EXPECT_TRUE(same_bits(multiply(serial_executor(), packed, x, kind.order), expected));
        });
      }
}

TEST(QuantizedProduct, GivesARowTheSameBitsInAnyCompany) {
  constexpr int64_t n = 70, k = 700, most = 1024;
  const auto x = normal(most * k, 3);
  std::vector<int64_t> order(most);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(text(kind));
    const auto packed = plain(kind.spec, n, k, 4).packed(pool_of_two(), n, k, kind.spec);
    const auto all = multiply(serial_executor(), packed, x, kind.order);
    for (const int64_t batch : {1, 2, 3, 4, 5, 13, 64, 1024})
      for (Executor* const executor : {&serial_executor(), &pool_of_two()})
        for (int64_t first = 0; first < (batch < 64 ? 3 * batch : most); first += batch) {
          std::vector<float> some, expected;
          for (int64_t r = first; r < first + batch; ++r) {
            some.insert(some.end(), x.begin() + order[size_t(r)] * k, x.begin() + (order[size_t(r)] + 1) * k);
            expected.insert(expected.end(), all.begin() + order[size_t(r)] * n,
                            all.begin() + (order[size_t(r)] + 1) * n);
          }
          ASSERT_TRUE(same_bits(multiply(*executor, packed, some, kind.order), expected)) << batch;
        }
  }
}

TEST(QuantizedProduct, IsNearTheProductWithTheDequantizedWeight) {
  constexpr int64_t m = 9, n = 50, k = 300;
  const auto x = normal(m * k, 6), w = normal(n * k, 7), bias = normal(n, 8);
  for (const Kind& kind : made_kinds()) {
    const auto packed = quantize(pool_of_two(), {w.data(), k}, n, k, kind.spec);
    std::vector<float> values(n * k), y(m * n);
    dequantize(pool_of_two(), packed, {values.data(), k});
    product(pool_of_two(), packed, {x.data(), k}, m, {y.data(), n}, bias.data(), kind.order);
    // Half a step of the greatest x for bytes, 2^-9 each for x and table in tiles, and the roundings of a chain.
    const double relative = meets_bytes(kind.spec.codes)                  ? 0
                            : kind.order != AccumulationOrder::fp32_chain ? 0x1p-8
                                                                          : 1e-6;
    for (int64_t r = 0; r < m; ++r) {
      double most = 0;
      for (int64_t i = 0; i < k; ++i) most = std::max(most, std::fabs(double(x[size_t(r * k + i)])));
      for (int64_t c = 0; c < n; ++c) {
        double exact = double(bias[size_t(c)]), size = std::fabs(exact), sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double term = double(x[size_t(r * k + i)]) * double(values[size_t(c * k + i)]);
          exact += term, size += std::fabs(term), sum += std::fabs(double(values[size_t(c * k + i)]));
        }
        const double step = meets_bytes(kind.spec.codes) ? most / 254 * sum * 1.001 : 0;
        ASSERT_NEAR(y[size_t(r * n + c)], exact, relative * size + step + 1e-6) << text(kind);
      }
    }
  }
}

TEST(QuantizedProduct, RoundsABf16ResultOnceAndReadsBf16AsItsWidenedValue) {
  constexpr int64_t m = 7, n = 45, k = 64;
  const auto x = narrowed(normal(m * k, 9));
  const auto w = normal(n * k, 10), wide_x = widened(x);
  on_every_isa([&] {
    for (const Kind& kind : made_kinds()) {
      const auto packed = quantize(serial_executor(), {w.data(), k}, n, k, kind.spec);
      std::vector<bf16> y(m * n);
      product(serial_executor(), packed, {x.data(), k}, m, {y.data(), n}, nullptr, kind.order);
      EXPECT_TRUE(same_bits(y, narrowed(multiply(serial_executor(), packed, wide_x, kind.order)))) << text(kind);
    }
  });
}

TEST(QuantizedProduct, MakesARowThatIsNotFiniteNanAndATinyOneZero) {
  constexpr int64_t n = 5, k = 40;
  auto x = normal(5 * k, 11);
  x[3] = NAN, x[k + 4] = -INFINITY;
  for (int64_t i = 0; i < k; ++i) x[size_t(2 * k + i)] = 1e-40f, x[size_t(3 * k + i)] = 0;
  const auto w = normal(n * k, 12);
  on_every_isa([&] {
    const auto packed = quantize(serial_executor(), {w.data(), k}, n, k, {});
    const auto y = multiply(serial_executor(), packed, x, AccumulationOrder::bf16_tile);
    for (int64_t c = 0; c < n; ++c) {
      EXPECT_TRUE(std::isnan(y[size_t(c)]) && std::isnan(y[size_t(n + c)]));
      EXPECT_TRUE(y[size_t(2 * n + c)] == 0 && y[size_t(3 * n + c)] == 0);
      EXPECT_TRUE(std::isfinite(y[size_t(4 * n + c)]));
    }
  });
}

TEST(QuantizedWeight, KeepsTheCodesAndScalesItWasGiven) {
  constexpr int64_t n = 37, k = 111;
  for (const Kind& kind : kinds()) {
    const Plain w = plain(kind.spec, n, k, 13);
    const auto packed = w.packed(pool_of_two(), n, k, kind.spec);
    EXPECT_EQ(packed.spec().numbers, kind.spec.numbers) << text(kind);
    std::vector<float> values(n * k);
    dequantize(pool_of_two(), packed, {values.data(), k});
    const int64_t group = kind.spec.group > 0 ? kind.spec.group : k;
    for (int64_t c = 0; c < n; ++c)
      for (int64_t i = 0; i < k; ++i) {
        const uint8_t code = w.codes[size_t(c * k + i)];
        ASSERT_EQ(values[size_t(c * k + i)], value_of(kind.spec, w, code, c * packed.groups() + i / group));
      }
    Plain back{std::vector<uint8_t>(w.codes.size()), std::vector<float>(w.scales.size()), {}};
    unpack_codes(pool_of_two(), packed, back.codes.data(), back.scales.data());
    EXPECT_EQ(back.codes, w.codes);
    EXPECT_EQ(back.scales, w.scales);
  }
}

// With groups of 64: codes, scales, and zeros of the same type.
TEST(QuantizedWeight, TakesItsCodesBytes) {
  const auto bytes = [](Codes codes, CodeShift shift = CodeShift::none, CodeNumbers numbers = CodeNumbers::f32) {
    return QuantizedWeight(32, 640, {codes, 64, q4_table(), shift, numbers}).bytes();
  };
  EXPECT_EQ(bytes(Codes::table4, CodeShift::none, CodeNumbers::bf16), 32 * 320 + 32 * 10 * 2);
  EXPECT_EQ(bytes(Codes::table4, CodeShift::zeros, CodeNumbers::f16), 32 * 320 + 32 * 10 * 4);
  EXPECT_EQ(bytes(Codes::bytes), 32 * 640 + 32 * 10 * 4);
  EXPECT_EQ(bytes(Codes::nibbles), 32 * 320 + 32 * 10 * 4);
  EXPECT_EQ(bytes(Codes::table4), 32 * 320 + 32 * 10 * 4);
}

// Rows of panels, in part and whole, on every instruction set.
TEST(QuantizedWeight, HasTheValuesOfCodesTimesScales) {
  constexpr int64_t n = 70, k = 111;
  for (const Kind& kind : kinds()) {
    const Plain w = plain(kind.spec, n, k, 13);
    const auto packed = w.packed(pool_of_two(), n, k, kind.spec);
    const int64_t group = kind.spec.group > 0 ? kind.spec.group : k, groups = divide_up(k, group);
    std::vector<float> all;
    for (int64_t i = 0; i < n * k; ++i)
      all.push_back(value_of(kind.spec, w, w.codes[size_t(i)], i / k * groups + i % k / group));
    on_every_isa([&] {
      std::vector<float> found(n * k);
      dequantize(pool_of_two(), packed, {found.data(), k});
      EXPECT_TRUE(same_bits(found, all)) << text(kind);
      for (const auto& [first, count] : {std::pair{32, 38}, {5, 40}, {33, 1}, {0, 0}}) {
        std::vector<bf16> rows(size_t(count * k));
        dequantize_rows(pool_of_two(), packed, first, count, {rows.data(), k});
        EXPECT_TRUE(same_bits(rows, narrowed({all.begin() + first * k, all.begin() + (first + count) * k})))
            << text(kind) << " " << first;
      }
    });
  }
}

TEST(QuantizedWeight, IsTheNearestToWhatItWasMadeFrom) {
  constexpr int64_t n = 20, k = 150;
  auto w = normal(n * k, 14);
  std::fill_n(w.begin(), k, 0.0f);
  for (const Kind& kind : made_kinds()) {
    const auto packed = quantize(pool_of_two(), {w.data(), k}, n, k, kind.spec);
    std::vector<float> values(n * k);
    dequantize(pool_of_two(), packed, {values.data(), k});
    const int64_t group = kind.spec.group > 0 ? kind.spec.group : k;
    // The widest gap between neighbors over the scale's longer side; nf4's is between -1 and -0.696.
    const float gap = kind.spec.codes == Codes::bytes ? 1 / 127.0f : kind.spec.table == q4_table() ? 1 / 4.0f : 0.304f;
    for (int64_t c = 0; c < n; ++c)
      for (int64_t i = 0; i < k; ++i) {
        float most = 0;
        for (int64_t j = i / group * group; j < std::min(k, (i / group + 1) * group); ++j)
          most = std::max(most, std::fabs(w[size_t(c * k + j)]));
        ASSERT_LE(std::fabs(values[size_t(c * k + i)] - w[size_t(c * k + i)]), most * gap / 2 * 1.0001f) << text(kind);
      }
  }
}

}  // namespace
}  // namespace easydel::kernels
