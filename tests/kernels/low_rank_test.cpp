// Products with adapters of low rank: right values, and the same bits on every instruction set and in any company.
#include "easydel/kernels/low_rank.h"

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
