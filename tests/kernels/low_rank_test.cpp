// Products with adapters of low rank: right values, and the same bits on every instruction set and in any company.
#include "easydel/kernels/low_rank.h"

#include <algorithm>
#include <deque>

#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

struct LowRankShape {
  int64_t m, n, k;
};
constexpr LowRankShape low_rank_shapes[] = {{1, 16, 2}, {5, 33, 4}, {9, 96, 8}, {70, 70, 2}, {6, 130, 19}};

// make(executor, first, rows) of all rows, which has the same bits everywhere, and whose rows have them alone.
std::vector<float> rows_of_one_set_of_bits(
    int64_t m, const std::function<std::vector<float>(Executor&, int64_t first, int64_t rows)>& make) {
  const std::vector<float> first = make(serial_executor(), 0, m);
  on_every_isa([&] {
    for (Executor* const executor : {&serial_executor(), &pool_of_two(), &pool_of_five()})
      EXPECT_TRUE(same_bits(make(*executor, 0, m), first));
    std::vector<float> alone;
    for (int64_t row = 0; row < m; ++row) {
      const auto one = make(serial_executor(), row, 1);
      alone.insert(alone.end(), one.begin(), one.end());
    }
    EXPECT_TRUE(same_bits(alone, first));
  });
  return first;
}

TEST(LowRankKernels, AddAProductInOneChainAndOneSum) {
  for (const auto& [m, n, k] : low_rank_shapes)
    for (const bool with_y : {true, false}) {
      const auto y = normal(m * n, 1), low = normal(m * k, 2), b = normal(n * k, 3);
      const PackedWeight packed = pack(serial_executor(), {b.data(), k}, n, k, DType::f32);
      const auto out = rows_of_one_set_of_bits(m, [&](Executor& executor, int64_t first, int64_t rows) {
        std::vector<float> sum(size_t(rows * n));
        add_narrow_product(executor, with_y ? Input(y.data() + first * n, n) : Input(), low.data() + first * k, k,
                           packed, rows, -0.7f, {sum.data(), n});
        return sum;
      });
      for (int64_t r = 0; r < m; ++r)
        for (int64_t i = 0; i < n; ++i) {
          float sum = 0;
          for (int64_t j = 0; j < k; ++j) sum = std::fma(low[size_t(r * k + j)], b[size_t(i * k + j)], sum);
          const float expected = std::fma(-0.7f, sum, with_y ? y[size_t(r * n + i)] : 0.0f);
          ASSERT_EQ(out[size_t(r * n + i)], expected) << m << " " << n << " " << k << " at " << r << " " << i;
        }
    }
}

TEST(LowRankKernels, AddScaledRowsByOneFma) {
  for (const auto& [m, n, k] : low_rank_shapes) {
    const auto y = normal(m * n, 1), x = normal(m * n, 2);
    const auto out = rows_of_one_set_of_bits(m, [&](Executor& executor, int64_t first, int64_t rows) {
      std::vector<float> sum(size_t(rows * n));
      add_scaled(executor, {y.data() + first * n, n}, {x.data() + first * n, n}, rows, n, 0.3f, {sum.data(), n});
      return sum;
    });
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], std::fma(0.3f, x[i], y[i])) << i;
  }
}

TEST(LowRankKernels, MultiplyByFewRows) {
  for (const auto& [m, k, rank] : low_rank_shapes) {
    if (!is_narrow(rank)) continue;
    const auto x = normal(m * k, 1), a = normal(rank * k, 2);
    const auto low =
        rows_of_one_set_of_bits(m, [&, k = k, rank = rank](Executor& executor, int64_t first, int64_t rows) {
          std::vector<float> out(size_t(rows * rank));
          narrow_product(executor, {x.data() + first * k, k}, a.data(), rows, k, rank, -2, out.data());
          return out;
        });
    for (int64_t r = 0; r < m; ++r)
      for (int64_t j = 0; j < rank; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) sum += double(x[size_t(r * k + i)]) * double(a[size_t(j * k + i)]);
        ASSERT_NEAR(low[size_t(r * rank + j)], -2 * sum, 1e-4);
      }
  }
}

// Several adapters add to scattered rows of two results, as each would to one row alone; no other row changes.
TEST(LowRankKernels, AddWhatAdaptersMakeOfTheirRows) {
  constexpr int64_t m = 61, k = 96, ns[] = {70, 33};
  const std::vector<std::vector<int64_t>> rows = {{0, 3, 4, 9, 60}, {1}, {2, 5, 6, 7, 8, 20, 21, 22, 23, 24, 25, 40}};
  const std::vector<bf16> x = narrowed(normal(m * k, 1));
  const Input from(x.data(), k);
  for (const int64_t rank : {2, 8, 12, 16, 27, 32}) {
    SCOPED_TRACE(rank);
    struct Adapter {
      std::vector<float> narrow_a;
      PackedWeight a, b;
    };
    std::vector<Adapter> adapters;  // of the first result, then of the second
    for (unsigned i = 0; i < 2 * rows.size(); ++i) {
      const int64_t n = ns[i / rows.size()];
      const auto a = normal(rank * k, 10 + i), b = normal(n * rank, 20 + i);
      adapters.push_back({a, pack(serial_executor(), {a.data(), k}, rank, k, DType::bf16),
                          pack(serial_executor(), {b.data(), rank}, n, rank, DType::f32)});
    }
    const auto y = narrowed(normal(m * ns[0], 2)), other = narrowed(normal(m * ns[1], 3));
    // By the two products of one row, and the reference loops.
    std::vector<bf16> expected[] = {y, other};
    {
      const UseIsa use(Isa::reference);
      for (size_t i = 0; i < adapters.size(); ++i)
        for (const int64_t row : rows[i % rows.size()]) {
          const Adapter& of = adapters[i];
          const int64_t n = of.b.n();
          std::vector<float> low(static_cast<size_t>(rank));
          if (is_narrow(rank)) {
            narrow_product(serial_executor(), {x.data() + row * k, k}, of.narrow_a.data(), 1, k, rank, -1, low.data());
          } else {
            product(serial_executor(), of.a, {x.data() + row * k, k}, 1, {low.data(), rank}, nullptr,
                    AccumulationOrder::bf16_pairs);
            for (float& one : low) one = -one;
          }
          bf16* const to = expected[i / rows.size()].data() + row * n;
          add_narrow_product(serial_executor(), {to, n}, low.data(), rank, of.b, 1, -0.5F * float(i + 1), {to, n});
        }
    }
    on_every_isa([&] {
      for (Executor* const executor : {&serial_executor(), &pool_of_two(), &pool_of_five()}) {
        std::vector<bf16> found[] = {y, other};
        std::vector<AddedRows> all;
        std::vector<std::vector<float>> lows(adapters.size());
        std::deque<PackedLowRank> packed;
        for (size_t i = 0; i < adapters.size(); ++i) {
          const Adapter& of = adapters[i];
          AddedRows& one = all.emplace_back();
          one.rows = rows[i % rows.size()], one.rank = rank, one.b = &of.b;
          one.sign = -1, one.factor = -0.5F * float(i + 1);
          one.y = {found[i / rows.size()].data(), of.b.n()};
          if (is_narrow(rank)) {
            one.narrow_a = of.narrow_a.data();
          } else if (PackedLowRank::serves(of.a)) {
            one.both = &packed.emplace_back(of.a, of.b);
          } else {
            std::vector<float>& low = lows[i];
            low.resize(one.rows.size() * size_t(rank));
            for (size_t r = 0; r < one.rows.size(); ++r)
              product(*executor, of.a, {x.data() + one.rows[r] * k, k}, 1, {low.data() + int64_t(r) * rank, rank},
                      nullptr, AccumulationOrder::bf16_pairs);
            for (float& value : low) value = -value;
            one.low = low.data();
          }
        }
        add_low_ranks(*executor, all, from, k);
        for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(found[i], expected[i])) << i;
      }
    });
  }
}

TEST(LowRankKernels, OfWholeBlocksInBf16ArePackedTogether) {
  const auto packed = [](int64_t n, int64_t k, DType dtype) {
    const auto a = normal(n * k, 1);
    return pack(serial_executor(), {a.data(), k}, n, k, dtype);
  };
  EXPECT_FALSE(PackedLowRank::serves(packed(16, 90, DType::bf16)));
  EXPECT_FALSE(PackedLowRank::serves(packed(33, 96, DType::bf16)));
  EXPECT_FALSE(PackedLowRank::serves(packed(16, 96, DType::f32)));
  // Blocks of memory that share a page stay where they are while others come and go.
  std::vector<std::shared_ptr<uint8_t>> blocks;
  for (int i = 0; i < 200; ++i) {
    blocks.push_back(allocate_block(i % 7 == 0 ? 3 << 20 : 40000 + i));
    std::fill_n(blocks.back().get(), 40000 + i, uint8_t(i));
    if (i % 3 == 0) blocks[size_t(i / 2)].reset();
  }
  for (int i = 0; i < 200; ++i) {
    const uint8_t* const block = blocks[size_t(i)].get();
    EXPECT_TRUE(!block || std::all_of(block, block + 40000 + i, [&](uint8_t x) { return x == uint8_t(i); })) << i;
  }
  const UseIsa use(Isa::reference);
  EXPECT_FALSE(PackedLowRank::serves(packed(16, 96, DType::bf16)));
}

TEST(LowRankKernels, SumGradientsOverRowsInOrder) {
  for (const auto& [m, k, rank] : low_rank_shapes) {
    if (!is_narrow(rank)) continue;
    const auto x = normal(m * k, 1), low = normal(m * rank, 2);
    std::vector<float> expected(size_t(rank * k));
    for (int64_t r = 0; r < m; ++r)
      for (int64_t j = 0; j < rank; ++j)
        for (int64_t i = 0; i < k; ++i)
          expected[size_t(j * k + i)] =
              std::fma(low[size_t(r * rank + j)], x[size_t(r * k + i)], expected[size_t(j * k + i)]);
    on_every_isa([&, m = m, k = k, rank = rank] {
      for (Executor* const executor : {&serial_executor(), &pool_of_two()}) {
        std::vector<float> dw(expected.size());
        narrow_gradient(*executor, low.data(), {x.data(), k}, m, k, rank, dw.data());
        EXPECT_TRUE(same_bits(dw, expected));
      }
    });
  }
}

}  // namespace
}  // namespace easydel::kernels
