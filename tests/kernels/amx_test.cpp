// Everything by tiles against the other instruction sets. On a machine without tiles they are emulated
// (support/tiles/emulator.h): the same compiled loops run, instruction by instruction.
#include <algorithm>
#include <array>

#include "easydel/kernels/attention.h"
#include "easydel/kernels/grouped.h"
#include "easydel/kernels/product.h"
#include "easydel/kernels/quantized.h"
#include "kernels/support.h"
#include "support/tiles/emulator.h"

namespace easydel::kernels {
namespace {

using namespace testing;

class Tiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (available_isas().back() != Isa::amx)
      GTEST_SKIP() << "no AVX-512 with VNNI and BF16, which loops by tiles need too";
  }
};

struct Shape {
  int64_t m, n, k;
  std::string text() const { return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k); }
};

// Without tiles, on the set below them.
template <class Work>
auto without_tiles(const Work& work) {
  const UseIsa use(Isa::avx512_vnni);
  return work();
}
template <class Work>
auto by_tiles(const Work& work) {
  const UseIsa use(Isa::amx);
  return work();
}

// [rows, columns] transposed.
std::vector<bf16> turned(const std::vector<bf16>& x, int64_t rows, int64_t columns) {
  std::vector<bf16> out(x.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) out[size_t(c * rows + r)] = x[size_t(r * columns + c)];
  return out;
}

// left [m, k] times right [n, k] in the order of the tiles.
std::vector<float> in_order(const std::vector<bf16>& left, const std::vector<bf16>& right, const Shape& s) {
  return without_tiles([&] {
    std::vector<float> y(size_t(s.m * s.n));
    const PackedWeight packed = pack(pool_of_two(), {right.data(), s.k}, s.n, s.k, DType::bf16);
    product(pool_of_two(), packed, {left.data(), s.k}, s.m, {y.data(), s.n}, nullptr, AccumulationOrder::bf16_tile);
    return y;
  });
}

std::vector<bf16> numbers(int64_t count, unsigned seed, bool rough) {
  return narrowed(rough ? hostile(count, seed) : normal(count, seed));
}

// Rows of one tile and of two, whole blocks and the rows after them; k of one block, of a chunk, of several, and too
// long for L2; columns of one panel, of some, and of more than are processed together.
const Shape shapes[] = {{1, 1, 1},      {1, 600, 40},   {3, 33, 31},       {15, 31, 32},     {16, 32, 33},
                        {17, 64, 64},   {31, 65, 255},  {32, 7, 256},      {33, 40, 257},    {64, 96, 290},
                        {100, 97, 544}, {97, 70, 1060}, {1030, 100, 1060}, {260, 300, 2400}, {1030, 40, 2400}};

TEST_F(Tiles, GiveAProductTheBitsOfEveryOtherSet) {
  for (const Shape& s : shapes)
    for (const bool rough : {false, true}) {
      SCOPED_TRACE(s.text());
      const auto x = numbers(s.m * s.k, 1, rough), w = numbers(s.n * s.k, 2, rough);
      const auto wide_x = widened(x), bias = normal(s.n, 3);
      const PackedWeight packed = pack(pool_of_two(), {w.data(), s.k}, s.n, s.k, DType::bf16);
      const auto multiply = [&](Executor& executor, Input from) {
        std::vector<float> y(size_t(s.m * s.n));
        product(executor, packed, from, s.m, {y.data(), s.n}, bias.data(), AccumulationOrder::bf16_tile);
        return y;
      };
      const auto expected = without_tiles([&] { return multiply(pool_of_two(), {x.data(), s.k}); });
      by_tiles([&] {
        EXPECT_TRUE(same_bits(multiply(serial_executor(), {x.data(), s.k}), expected));
        EXPECT_TRUE(same_bits(multiply(pool_of_five(), {wide_x.data(), s.k}), expected));
      });
    }
}

TEST_F(Tiles, GiveGradientsOfBf16TheBitsOfTheirOrder) {
  for (const Shape& s : shapes)
    for (const bool rough : {false, true}) {
      SCOPED_TRACE(s.text());
      // dx [m, n] = dy [m, k] w [k, n], dw [m, n] = dy^T [m, k] x [k, n]: both of the same right side here.
      const auto dy = numbers(s.m * s.k, 4, rough), right = numbers(s.k * s.n, 5, rough);
      const auto dy_of_weight = turned(dy, s.m, s.k);
      const auto expected = in_order(dy, turned(right, s.k, s.n), s);
      by_tiles([&] {
        for (Executor* const executor : {&serial_executor(), &pool_of_five()})
          for (const bool add : {false, true}) {
            if (s.m > 100 && (rough || add != (executor == &serial_executor()))) continue;
            std::vector<float> dx(expected.size(), 0.5f), dw = dx, sum = expected;
            product_dx(*executor, {dy.data(), s.k}, {right.data(), s.n}, s.m, s.k, s.n, {dx.data(), s.n}, add);
            product_dw(*executor, {dy_of_weight.data(), s.m}, {right.data(), s.n}, s.k, s.m, s.n, {dw.data(), s.n},
                       add);
            if (add)
              for (float& one : sum) one += 0.5f;
            EXPECT_TRUE(same_bits(dx, sum));
            EXPECT_TRUE(same_bits(dw, sum));
          }
        std::vector<bf16> short_dx(expected.size());
        product_dx(pool_of_two(), {dy.data(), s.k}, {right.data(), s.n}, s.m, s.k, s.n, {short_dx.data(), s.n}, false);
        EXPECT_TRUE(same_bits(short_dx, narrowed(expected)));
      });
    }
}

// Rows are `stride` apart and begin at any address; the memory between them is neither read nor written.
TEST_F(Tiles, ReadAndWriteRowsWithAStride) {
  constexpr int64_t m = 37, n = 45, k = 70, dy_stride = 53, right_stride = 50, out_stride = 61;
  const auto dy = numbers(m * k, 6, false), right = numbers(k * n, 7, false);
  const auto spread = [](const std::vector<bf16>& x, int64_t rows, int64_t columns, int64_t stride) {
    std::vector<bf16> out(size_t(rows * stride + 1), narrow(NAN));
    for (int64_t r = 0; r < rows; ++r) std::copy_n(x.data() + r * columns, columns, out.data() + 1 + r * stride);
    return out;
  };
  const auto wide_dy = spread(dy, m, k, k + 3), turned_dy = spread(turned(dy, m, k), k, m, dy_stride),
             apart = spread(right, k, n, right_stride);
  const auto expected = in_order(dy, turned(right, k, n), {m, n, k});
  by_tiles([&] {
    std::vector<float> dx(m * out_stride, 9.0f), dw = dx;
    product_dx(pool_of_two(), {wide_dy.data() + 1, k + 3}, {apart.data() + 1, right_stride}, m, k, n,
               {dx.data(), out_stride}, false);
    product_dw(pool_of_two(), {turned_dy.data() + 1, dy_stride}, {apart.data() + 1, right_stride}, k, m, n,
               {dw.data(), out_stride}, false);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < out_stride; ++c) {
        const float value = c < n ? expected[size_t(r * n + c)] : 9.0f;
        ASSERT_EQ(dx[size_t(r * out_stride + c)], value) << r << ", " << c;
        ASSERT_EQ(dw[size_t(r * out_stride + c)], value) << r << ", " << c;
      }
  });
}

TEST_F(Tiles, GiveGroupsTheBitsOfEachAlone) {
  const std::vector<int64_t> begin = {0, 0, 1, 14, 14, 47, 500, 500};
  const int64_t groups = int64_t(begin.size()) - 1, rows = begin.back();
  for (const int64_t n : {40, 300}) {
    constexpr int64_t k = 300;
    const auto x = numbers(rows * k, 8, true), dy = numbers(rows * n, 9, true), w = numbers(groups * n * k, 10, true);
    by_tiles([&] {
      for (Executor* const executor : {&serial_executor(), &pool_of_five()}) {
        std::vector<float> y(size_t(rows * n)), dx(size_t(rows * k)), dw(size_t(groups * n * k), 3.0f);
        grouped_product(*executor, begin, {.n = n, .k = k, .rows = {w.data(), k}, .dtype = DType::bf16}, {x.data(), k},
                        {y.data(), n}, nullptr, AccumulationOrder::bf16_tile);
        grouped_product_dx(*executor, begin, {dy.data(), n}, {w.data(), k}, n, k, {dx.data(), k});
        grouped_product_dw(*executor, begin, {dy.data(), n}, {x.data(), k}, n, k, {dw.data(), k});
        for (int64_t g = 0; g < groups; ++g) {
          const int64_t first = begin[size_t(g)], count = begin[size_t(g) + 1] - first;
          const auto part = [](const auto& all, int64_t from, int64_t size) {
            return std::decay_t<decltype(all)>(all.begin() + from, all.begin() + from + size);
          };
          const auto own_x = part(x, first * k, count * k), own_dy = part(dy, first * n, count * n),
                     own_w = part(w, g * n * k, n * k);
          EXPECT_TRUE(same_bits(part(y, first * n, count * n), in_order(own_x, own_w, {count, n, k})));
          EXPECT_TRUE(same_bits(part(dx, first * k, count * k), in_order(own_dy, turned(own_w, n, k), {count, k, n})));
          EXPECT_TRUE(same_bits(part(dw, g * n * k, n * k),
                                in_order(turned(own_dy, count, n), turned(own_x, count, k), {n, k, count})));
        }
      }
    });
  }
}

TEST_F(Tiles, GiveQuantizedWeightsTheBitsOfEveryOtherSet) {
  for (const Codes codes : {Codes::bytes, Codes::table4, Codes::nibbles})
    for (const int64_t group : {0, 32, 64, 96, 128, 320, 1024})
      for (const Shape& s : {Shape{13, 33, 40}, {16, 40, 129}, {17, 7, 300}, {33, 64, 700}, {70, 45, 1500}}) {
        SCOPED_TRACE(s.text() + ", codes " + std::to_string(int(codes)) + " by " + std::to_string(group));
        for (const bool rough : {false, true}) {
          const auto x = rough ? hostile(s.m * s.k, 11) : normal(s.m * s.k, 11), w = normal(s.n * s.k, 12),
                     bias = normal(s.n, 13);
          const auto packed = quantize(pool_of_two(), {w.data(), s.k}, s.n, s.k, {codes, group, nf4_table()});
          const auto multiply = [&](Executor& executor) {
            std::vector<float> y(size_t(s.m * s.n));
            product(executor, packed, {x.data(), s.k}, s.m, {y.data(), s.n}, bias.data(), AccumulationOrder::bf16_tile);
            return y;
          };
          const auto expected = without_tiles([&] { return multiply(pool_of_two()); });
          by_tiles([&] {
            EXPECT_TRUE(same_bits(multiply(serial_executor()), expected));
            EXPECT_TRUE(same_bits(multiply(pool_of_five()), expected));
          });
        }
      }
}

// Sums of bytes beyond 32 bits with the weights' offset, within them without.
TEST_F(Tiles, SumTheLongestRowsOfTheLargestBytes) {
  constexpr int64_t m = 20, n = 32, k = 131072;
  const std::vector<float> x(size_t(m * k), 1.0f), scale(n, 1.0f);
  const std::vector<uint8_t> codes(size_t(n * k), 127);
  const auto packed = pack_codes(pool_of_two(), codes.data(), scale.data(), nullptr, n, k, {Codes::bytes, 0, {}});
  by_tiles([&] {
    std::vector<float> y(m * n);
    product(pool_of_two(), packed, {x.data(), k}, m, {y.data(), n}, nullptr, AccumulationOrder::fp32_chain);
    EXPECT_TRUE(same_bits(y, std::vector<float>(m * n, float(int64_t(127) * 127 * k) * (1.0f / 127))));
  });
}

TEST_F(Tiles, DoWhatTheyServeAndNothingElse) {
  if (!test::emulates_tiles()) GTEST_SKIP() << "the processor's own tiles are not counted";
  constexpr int64_t m = 40, n = 64, k = 96;
  const auto x = numbers(m * k, 14, false), w = numbers(n * k, 15, false), dy = numbers(m * n, 16, false);
  const auto wide = widened(w);
  std::vector<float> y(m * n), dx(m * k), dw(n * k);
  const PackedWeight packed = pack(serial_executor(), {w.data(), k}, n, k, DType::bf16);
  const auto bytes = quantize(serial_executor(), {w.data(), k}, n, k, {Codes::bytes, 0, {}}),
             codes = quantize(serial_executor(), {w.data(), k}, n, k, {Codes::table4, 32, nf4_table()});
  // Tile products of one call: of bf16 and of bytes.
  const auto count = [&](const auto& work) {
    const test::TileProducts before = test::emulated_products();
    by_tiles(work);
    const test::TileProducts after = test::emulated_products();
    return std::array<uint64_t, 2>{after.bf16 - before.bf16, after.bytes - before.bytes};
  };
  using Counts = std::array<uint64_t, 2>;
  const auto forward = [&](int64_t rows, AccumulationOrder order) {
    return count([&] { product(serial_executor(), packed, {x.data(), k}, rows, {y.data(), n}, nullptr, order); });
  };
  // Row tiles x column tiles x blocks of k.
  EXPECT_EQ(forward(40, AccumulationOrder::bf16_tile), (Counts{3 * 4 * 3, 0}));
  EXPECT_EQ(forward(4, AccumulationOrder::bf16_tile), (Counts{1 * 4 * 3, 0}));
  EXPECT_EQ(forward(3, AccumulationOrder::bf16_tile), (Counts{0, 0}));
  EXPECT_EQ(forward(40, AccumulationOrder::bf16_pairs), (Counts{0, 0}));
  EXPECT_EQ(forward(40, AccumulationOrder::fp32_chain), (Counts{0, 0}));
  EXPECT_EQ(count([&] {
              product_dx(serial_executor(), {dy.data(), n}, {w.data(), k}, m, n, k, {dx.data(), k}, false);
            }),
            (Counts{3 * 6 * 2, 0}));
  EXPECT_EQ(count([&] {
              product_dx(serial_executor(), {dy.data(), n}, {wide.data(), k}, m, n, k, {dx.data(), k}, false);
            }),
            (Counts{0, 0}));
  EXPECT_EQ(count([&] {
              product_dw(serial_executor(), {dy.data(), n}, {x.data(), k}, m, n, k, {dw.data(), k}, false);
            }),
            (Counts{4 * 6 * 2, 0}));
  const auto quantized = [&](const QuantizedWeight& weight, int64_t rows, AccumulationOrder order) {
    return count([&] { product(serial_executor(), weight, {x.data(), k}, rows, {y.data(), n}, nullptr, order); });
  };
  EXPECT_EQ(quantized(bytes, 40, AccumulationOrder::bf16_tile), (Counts{0, 3 * 4 * 2}));  // blocks of 64 k
  EXPECT_EQ(quantized(bytes, 12, AccumulationOrder::bf16_tile), (Counts{0, 0}));
  EXPECT_EQ(quantized(codes, 40, AccumulationOrder::bf16_tile), (Counts{3 * 4 * 3, 0}));
  EXPECT_EQ(quantized(codes, 4, AccumulationOrder::bf16_tile), (Counts{0, 0}));
  EXPECT_EQ(quantized(codes, 40, AccumulationOrder::fp32_chain), (Counts{0, 0}));
  const auto attention = [&](int64_t queries, AccumulationOrder order) {
    const AttentionSpec spec{.heads = 1, .kv_heads = 1, .head_dim = n, .v_dim = n};
    const AttentionSequence sequence{.queries = queries, .past = m - queries, .keys = m};
    const Heads in{dy.data(), DType::bf16, n, n};
    return count([&] {
      attend(serial_executor(), spec, {&sequence, 1}, in, in, in, {y.data(), DType::f32, n, n}, nullptr, order);
    });
  };
  // Tasks of 12 rows, two of which see keys of one block and one of two: 2 blocks of dimensions x 2 column tiles, then
  // 2 panels of values; and one task of 4 rows, by FMAs.
  EXPECT_EQ(attention(40, AccumulationOrder::bf16_tile), (Counts{4 * (2 * 2 + 2 * 2), 0}));
  EXPECT_EQ(attention(12, AccumulationOrder::bf16_tile), (Counts{2 * (2 * 2 + 2 * 2), 0}));
  EXPECT_EQ(attention(11, AccumulationOrder::bf16_tile), (Counts{0, 0}));
  EXPECT_EQ(attention(40, AccumulationOrder::bf16_pairs), (Counts{0, 0}));
  EXPECT_EQ(attention(40, AccumulationOrder::fp32_chain), (Counts{0, 0}));
}

}  // namespace
}  // namespace easydel::kernels
