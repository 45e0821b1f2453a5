#include "easydel/kernels/product.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/kernels/gated_product.h"
#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

// The contract of accumulation_order.h, written as it reads.
float chain(const float* x, const float* w, int64_t k) {
  float sum = 0;
  for (int64_t i = 0; i < k; ++i) sum = std::fma(x[i], w[i], sum);
  return sum;
}

float flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

float tile(const float* x, const float* w, int64_t k) {
  float sum = 0;
  for (int64_t k0 = 0; k0 < k; k0 += 32) {
    float even = 0, odd = 0;
    for (int64_t i = k0; i < k0 + 32; ++i) {
      float& to = i % 2 ? odd : even;
      to = flush(std::fma(i < k ? flush(x[i]) : 0, i < k ? flush(w[i]) : 0, to));
    }
    sum = flush(sum + flush(even + odd));
  }
  return sum;
}

float pairs(const float* x, const float* w, int64_t k) {
  float sum = 0;
  for (int64_t i = 0; i < k; i += 2)
    for (const int64_t j : {i + 1, i}) sum = flush(std::fma(flush(x[j]), flush(w[j]), sum));
  return sum;
}

struct Kind {
  const char* text;
  DType weight;
  AccumulationOrder order;

  bool rounds_x() const { return order != AccumulationOrder::fp32_chain; }
  float sum(const float* x, const float* w, int64_t k) const {
    return order == AccumulationOrder::bf16_tile    ? tile(x, w, k)
           : order == AccumulationOrder::bf16_pairs ? pairs(x, w, k)
                                                    : chain(x, w, k);
  }
};
const Kind kinds[] = {{"fp32", DType::f32, AccumulationOrder::fp32_chain},
                      {"bf16 widened", DType::bf16, AccumulationOrder::fp32_chain},
                      {"bf16 tiles", DType::bf16, AccumulationOrder::bf16_tile},
                      {"bf16 pairs", DType::bf16, AccumulationOrder::bf16_pairs}};

std::vector<float> by_contract(const Kind& kind, std::vector<float> x, std::vector<float> w, int64_t m, int64_t n,
                               int64_t k) {
  if (kind.weight == DType::bf16) w = widened(narrowed(w));
  if (kind.rounds_x()) x = widened(narrowed(x));
  // The panel of bf16 is filled up with zeros, which only a sum of -0 can tell.
  const int64_t padded = kind.weight == DType::bf16 ? round_up(k, 32) : k;
  std::vector<float> y(static_cast<size_t>(m * n)), row(static_cast<size_t>(padded)),
      column(static_cast<size_t>(padded));
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) {
      std::copy_n(x.data() + r * k, k, row.data());
      std::copy_n(w.data() + c * k, k, column.data());
      y[size_t(r * n + c)] = kind.sum(row.data(), column.data(), padded);
    }
  return y;
}

std::vector<float> multiply(Executor& executor, const PackedWeight& w, const std::vector<float>& x,
                            AccumulationOrder order) {
  const int64_t m = w.k() ? int64_t(x.size()) / w.k() : 0;
  std::vector<float> y(static_cast<size_t>(m * w.n()), 77.0f);
  product(executor, w, {x.data(), w.k()}, m, {y.data(), w.n()}, nullptr, order);
  return y;
}

struct Shape {
  int64_t m, n, k;
};

TEST(Product, HasTheBitsOfTheContractOnEveryInstructionSet) {
  for (const Shape s : {Shape{1, 1, 1},
                        {2, 5, 3},
                        {1, 33, 31},
                        {3, 64, 32},
                        {13, 31, 33},
                        {5, 96, 65},
                        {25, 17, 300},
                        {1, 40, 515},
                        {12, 32, 64},
                        {31, 70, 129},
                        {14, 230, 1060}})
    for (const Kind& kind : kinds)
      for (const bool rough : {false, true}) {
        SCOPED_TRACE(str(kind.text, " ", s.m, " x ", s.n, " x ", s.k, rough ? ", rough" : ""));
        const auto x = rough ? hostile(s.m * s.k, 1) : normal(s.m * s.k, 1);
        const auto w = rough ? hostile(s.n * s.k, 2) : normal(s.n * s.k, 2);
        const auto expected = by_contract(kind, x, w, s.m, s.n, s.k);
        on_every_isa([&] {
          const PackedWeight packed = pack(serial_executor(), {w.data(), s.k}, s.n, s.k, kind.weight);
          EXPECT_TRUE(same_bits(multiply(serial_executor(), packed, x, kind.order), expected));
        });
      }
}

TEST(Product, GivesARowTheSameBitsInAnyCompany) {
  constexpr int64_t n = 300, k = 190, most = 1024;
  const auto x = normal(most * k, 3), w = normal(n * k, 4);
  std::vector<int64_t> order(most);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.text);
    const PackedWeight packed = pack(pool_of_two(), {w.data(), k}, n, k, kind.weight);
    const auto all = multiply(serial_executor(), packed, x, kind.order);
    for (const int64_t batch : {1, 2, 3, 4, 5, 6, 7, 12, 13, 64, 500, 1024})
      for (Executor* const executor : {&serial_executor(), &pool_of_two(), &openmp_executor()})
        for (int64_t first = 0; first < (batch == 1 ? 40 : most); first += batch) {
          const int64_t rows = std::min(batch, most - first);
          std::vector<float> some, expected;
          for (int64_t r = first; r < first + rows; ++r) {
            some.insert(some.end(), x.begin() + order[size_t(r)] * k, x.begin() + (order[size_t(r)] + 1) * k);
            expected.insert(expected.end(), all.begin() + order[size_t(r)] * n,
                            all.begin() + (order[size_t(r)] + 1) * n);
          }
          ASSERT_TRUE(same_bits(multiply(*executor, packed, some, kind.order), expected)) << batch << " from " << first;
          if (batch < 64 && first > 60) break;
        }
  }
}

TEST(Product, GivesARowTheSameBitsInALeftSideTooLargeForOneSweep) {
  constexpr int64_t m = 400, n = 3, k = 30000;
  const auto x = normal(m * k, 40), w = normal(n * k, 41);
  for (const Kind& kind : kinds) {
    const PackedWeight packed = pack(pool_of_two(), {w.data(), k}, n, k, kind.weight);
    const auto all = multiply(pool_of_two(), packed, x, kind.order);
    for (const int64_t r : {0, 191, 192, 193, 399}) {
      const std::vector<float> alone(x.begin() + r * k, x.begin() + (r + 1) * k);
      EXPECT_TRUE(same_bits(multiply(serial_executor(), packed, alone, kind.order),
                            std::vector<float>(all.begin() + r * n, all.begin() + (r + 1) * n)));
    }
  }
}

TEST(Product, GivesManyRowsTheBitsThatFewHaveAndRoundsThemOnce) {
  constexpr int64_t m = 205, n = 96;
  for (const int64_t k : {300, 600, 1500})
    for (const Kind& kind : kinds) {
      SCOPED_TRACE(str(kind.text, ", ", k));
      auto x = hostile(m * k, 50);
      const auto w = normal(n * k, 51);
      x[size_t(17 * k + 5)] = INFINITY, x[size_t(18 * k + 6)] = -INFINITY, x[size_t(140 * k + 7)] = NAN;
      x[size_t(141 * k)] = INFINITY, x[size_t(141 * k + 1)] = -INFINITY;
      const PackedWeight packed = pack(pool_of_two(), {w.data(), k}, n, k, kind.weight);
      std::vector<float> few;
      for (int64_t r = 0; r < m; r += 5) {
        const auto some = multiply(serial_executor(), packed, {x.begin() + r * k, x.begin() + (r + 5) * k}, kind.order);
        few.insert(few.end(), some.begin(), some.end());
      }
      for (Executor* const executor : {&serial_executor(), &pool_of_two()}) {
        std::vector<float> found = multiply(*executor, packed, x, kind.order), expected = few;
        std::vector<bf16> rounded(size_t(m * n));
        product(*executor, packed, {x.data(), k}, m, {rounded.data(), n}, nullptr, kind.order);
        EXPECT_TRUE(same_bits(rounded, narrowed(found)));
        for (std::vector<float>* const values : {&found, &expected})  // the sign of a NaN is unspecified
          for (float& y : *values) y = std::isnan(y) ? 7.0f : y;
        EXPECT_TRUE(same_bits(found, expected));
      }
    }
}

TEST(GatedProduct, HasTheBitsOfTheActivationAndTheProduct) {
  constexpr int64_t n = 70, k = 190, stride = 200;
  const auto w = normal(n * k, 60), bias = normal(n, 61);
  for (const int64_t m : {1, 5, 33, 205}) {
    const auto gate = hostile(m * stride, 62), up = normal(m * stride, 63);
    const auto short_gate = narrowed(gate), short_up = narrowed(up);
    const auto expect = [&](Executor& executor, const Kind& kind, const auto& gates, const auto& ups) {
      auto made = gates;
      const PackedWeight packed = pack(serial_executor(), {w.data(), k}, n, k, kind.weight);
      std::vector<float> two(static_cast<size_t>(m * n)), one(two.size());
      activate(executor, Activation::silu, {gates.data(), stride}, {ups.data(), stride}, m, k, {made.data(), stride});
      product(executor, packed, {made.data(), stride}, m, {two.data(), n}, bias.data(), kind.order);
      gated_product(executor, packed, Activation::silu, {gates.data(), stride}, {ups.data(), stride}, m,
                    {one.data(), n}, bias.data(), kind.order);
      EXPECT_TRUE(same_bits(one, two)) << kind.text << ", " << m;
    };
    on_every_isa([&] {
      for (const Kind& kind : kinds)
        for (Executor* const executor : {&serial_executor(), &pool_of_two()})
          expect(*executor, kind, gate, up), expect(*executor, kind, short_gate, short_up);
    });
  }
}

TEST(Product, IsNearTheExactProduct) {
  constexpr int64_t m = 40, n = 70, k = 700;
  const auto x = normal(m * k, 6), w = normal(n * k, 7), bias = normal(n, 8);
  for (const Kind& kind : kinds) {
    const PackedWeight packed = pack(pool_of_two(), {w.data(), k}, n, k, kind.weight);
    std::vector<float> y(m * n);
    product(pool_of_two(), packed, {x.data(), k}, m, {y.data(), n}, bias.data(), kind.order);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) {
        double exact = double(bias[size_t(c)]), size = std::fabs(exact);
        for (int64_t i = 0; i < k; ++i) {
          const float a = x[size_t(r * k + i)], b = w[size_t(c * k + i)];
          const double term = double(kind.rounds_x() ? widen(narrow(a)) : a) *
                              double(kind.weight == DType::bf16 ? widen(narrow(b)) : b);
          exact += term, size += std::fabs(term);
        }
        // The usual error of a chain grows with the root of its length.
        ASSERT_NEAR(y[size_t(r * n + c)], exact, size * 0x1p-24 * std::sqrt(double(k))) << kind.text;
      }
  }
}

TEST(Product, RoundsABf16ResultOnceAndReadsAndWritesByStride) {
  constexpr int64_t m = 9, n = 45, k = 50, x_stride = 61, y_stride = 80;
  const auto w = normal(n * k, 9), x = normal(m * x_stride, 10), bias = normal(n, 11);
  const auto short_x = narrowed(x);
  on_every_isa([&] {
    for (const Kind& kind : kinds) {
      const PackedWeight packed = pack(serial_executor(), {w.data(), k}, n, k, kind.weight);
      std::vector<float> wide(m * y_stride, 5.0f);
      std::vector<bf16> narrowed_y(m * y_stride, narrow(5.0f));
      product(serial_executor(), packed, {short_x.data(), x_stride}, m, {wide.data(), y_stride}, bias.data(),
              kind.order);
      product(serial_executor(), packed, {short_x.data(), x_stride}, m, {narrowed_y.data(), y_stride}, bias.data(),
              kind.order);
      EXPECT_TRUE(same_bits(narrowed_y, narrowed(wide))) << kind.text;
      for (int64_t r = 0; r < m; ++r) EXPECT_EQ(wide[size_t(r * y_stride + n)], 5.0f);
    }
  });
}

TEST(Product, PacksTheSameFromEitherNumberType) {
  constexpr int64_t n = 50, k = 70;
  const auto w = normal(n * k, 12);
  const auto short_w = narrowed(w);
  const auto wide_w = widened(short_w);
  on_every_isa([&] {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const PackedWeight a = pack(serial_executor(), {short_w.data(), k}, n, k, dtype);
      const PackedWeight b = pack(pool_of_two(), {wide_w.data(), k}, n, k, dtype);
      EXPECT_EQ(std::memcmp(a.data(), b.data(), size_t(a.bytes())), 0);
    }
  });
}

TEST(Product, CarriesInfinitiesAndNansToTheirElementsOnly) {
  constexpr int64_t m = 14, n = 40, k = 64;
  auto x = normal(m * k, 13), w = normal(n * k, 14);
  x[3 * k + 5] = INFINITY;
  w[7 * k + 5] = 0;
  w[8 * k + 60] = NAN;
  on_every_isa([&] {
    for (const Kind& kind : kinds) {
      const auto y =
          multiply(serial_executor(), pack(serial_executor(), {w.data(), k}, n, k, kind.weight), x, kind.order);
      for (int64_t r = 0; r < m; ++r)
        for (int64_t c = 0; c < n; ++c) {
          const float value = y[size_t(r * n + c)];
          if (c == 8 || (r == 3 && c == 7))
            EXPECT_TRUE(std::isnan(value));
          else if (r == 3)
            EXPECT_TRUE(std::isinf(value));
          else
            EXPECT_TRUE(std::isfinite(value));
        }
    }
  });
}

TEST(Product, OfNoRowsOrNoTermsIsEmptyOrZero) {
  const std::vector<float> nothing;
  const PackedWeight packed = pack(serial_executor(), {nothing.data(), 0}, 3, 0, DType::f32);
  std::vector<float> y(6, 9.0f);
  product(serial_executor(), packed, {nothing.data(), 0}, 0, {y.data(), 3}, nullptr, AccumulationOrder::fp32_chain);
  EXPECT_EQ(y[0], 9.0f);
  product(serial_executor(), packed, {nothing.data(), 0}, 2, {y.data(), 3}, nullptr, AccumulationOrder::fp32_chain);
  EXPECT_EQ(y, std::vector<float>(6, 0.0f));
}

// A sum in double precision, and the possible error of a chain of fp32 additions: a chain of n terms is off by about
// 2^-24 times the sum of their magnitudes if roundings go either way; four times that is never exceeded here.
struct Sum {
  explicit Sum(double start) : value(start), size(start) {}
  void add(double term) { value += term, size += std::abs(term); }
  double rounding() const { return 4 * 0x1p-24 * size; }
  double value, size;
};

TEST(ProductGradients, AreNearTheExactOnesForAnyNumberOfThreads) {
  for (const Shape s : {Shape{1, 1, 1}, {37, 50, 70}, {300, 33, 41}, {5, 300, 290}, {64, 64, 64}, {3, 4500, 20}}) {
    const auto dy = normal(s.m * s.n, 15), x = normal(s.m * s.k, 16), w = normal(s.n * s.k, 17);
    for (const bool add : {false, true})
      on_every_isa([&] {
        std::vector<float> dx(size_t(s.m * s.k), 0.5f), dw(size_t(s.n * s.k), 0.5f), db(size_t(s.n), 0.5f);
        auto dx2 = dx, dw2 = dw, db2 = db;
        product_dx(serial_executor(), {dy.data(), s.n}, {w.data(), s.k}, s.m, s.n, s.k, {dx.data(), s.k}, add);
        product_dw(serial_executor(), {dy.data(), s.n}, {x.data(), s.k}, s.m, s.n, s.k, {dw.data(), s.k}, add);
        sum_rows(serial_executor(), {dy.data(), s.n}, s.m, s.n, db.data(), add);
        product_dx(pool_of_five(), {dy.data(), s.n}, {w.data(), s.k}, s.m, s.n, s.k, {dx2.data(), s.k}, add);
        product_dw(pool_of_five(), {dy.data(), s.n}, {x.data(), s.k}, s.m, s.n, s.k, {dw2.data(), s.k}, add);
        sum_rows(pool_of_five(), {dy.data(), s.n}, s.m, s.n, db2.data(), add);
        ASSERT_TRUE(same_bits(dx, dx2) && same_bits(dw, dw2) && same_bits(db, db2));
        for (int64_t i = 0; i < s.n; ++i) {
          Sum exact(add ? 0.5 : 0);
          for (int64_t r = 0; r < s.m; ++r) exact.add(double(dy[size_t(r * s.n + i)]));
          ASSERT_NEAR(db[size_t(i)], exact.value, exact.rounding());
          for (int64_t j = 0; j < s.k; ++j) {
            exact = Sum(add ? 0.5 : 0);
            for (int64_t r = 0; r < s.m; ++r)
              exact.add(double(dy[size_t(r * s.n + i)]) * double(x[size_t(r * s.k + j)]));
            ASSERT_NEAR(dw[size_t(i * s.k + j)], exact.value, exact.rounding());
          }
        }
        for (int64_t r = 0; r < s.m; ++r)
          for (int64_t j = 0; j < s.k; ++j) {
            Sum exact(add ? 0.5 : 0);
            for (int64_t i = 0; i < s.n; ++i)
              exact.add(double(dy[size_t(r * s.n + i)]) * double(w[size_t(i * s.k + j)]));
            ASSERT_NEAR(dx[size_t(r * s.k + j)], exact.value, exact.rounding());
          }
      });
  }
}

TEST(ProductGradients, OfBf16AreNearTheExactOnesForAnyNumberOfThreads) {
  for (const Shape s :
       {Shape{1, 1, 1}, {37, 50, 70}, {300, 33, 41}, {5, 301, 290}, {64, 64, 64}, {0, 5, 40}, {9, 1, 33}}) {
    const auto dy = narrowed(normal(s.m * s.n, 15)), x = narrowed(normal(s.m * s.k, 16)),
               w = narrowed(normal(s.n * s.k, 17));
    const auto wide_dy = widened(dy), wide_x = widened(x), wide_w = widened(w);
    for (const bool add : {false, true})
      on_every_isa([&] {
        std::vector<float> dx(size_t(s.m * s.k), 0.5f), dw(size_t(s.n * s.k), 0.5f);
        auto dx2 = dx, dw2 = dw;
        product_dx(serial_executor(), {dy.data(), s.n}, {w.data(), s.k}, s.m, s.n, s.k, {dx.data(), s.k}, add);
        product_dw(serial_executor(), {dy.data(), s.n}, {x.data(), s.k}, s.m, s.n, s.k, {dw.data(), s.k}, add);
        product_dx(pool_of_five(), {dy.data(), s.n}, {w.data(), s.k}, s.m, s.n, s.k, {dx2.data(), s.k}, add);
        product_dw(pool_of_five(), {dy.data(), s.n}, {x.data(), s.k}, s.m, s.n, s.k, {dw2.data(), s.k}, add);
        ASSERT_TRUE(same_bits(dx, dx2) && same_bits(dw, dw2));
        for (int64_t j = 0; j < s.k; ++j) {
          for (int64_t i = 0; i < s.n; ++i) {
            Sum exact(add ? 0.5 : 0);
            for (int64_t r = 0; r < s.m; ++r)
              exact.add(double(wide_dy[size_t(r * s.n + i)]) * double(wide_x[size_t(r * s.k + j)]));
            ASSERT_NEAR(dw[size_t(i * s.k + j)], exact.value, exact.rounding());
          }
          for (int64_t r = 0; r < s.m; ++r) {
            Sum exact(add ? 0.5 : 0);
            for (int64_t i = 0; i < s.n; ++i)
              exact.add(double(wide_dy[size_t(r * s.n + i)]) * double(wide_w[size_t(i * s.k + j)]));
            ASSERT_NEAR(dx[size_t(r * s.k + j)], exact.value, exact.rounding());
          }
        }
      });
  }
}

TEST(ProductGradients, RoundALongSumOnceToBf16) {
  constexpr int64_t m = 400, n = 2100, k = 21;
  const auto dy = narrowed(normal(m * n, 21)), w = narrowed(normal(n * k, 22)), before = narrowed(normal(m * k, 23));
  on_every_isa([&] {
    std::vector<float> dx(m * k), sum;
    product_dx(serial_executor(), {dy.data(), n}, {w.data(), k}, m, n, k, {dx.data(), k}, false);
    for (size_t i = 0; i < dx.size(); ++i) sum.push_back(dx[i] + widen(before[i]));
    for (const bool add : {false, true}) {
      std::vector<bf16> short_dx = before;
      product_dx(pool_of_five(), {dy.data(), n}, {w.data(), k}, m, n, k, {short_dx.data(), k}, add);
      EXPECT_TRUE(same_bits(short_dx, narrowed(add ? sum : dx)));
    }
  });
}

TEST(ProductGradients, GiveAColumnTheSameBitsInARightSideTooLargeForOneSweep) {
  constexpr int64_t m = 3, n = 4096, k = 1100, first = 1056, some = k - first;
  const auto dy = narrowed(normal(m * n, 31)), w = narrowed(normal(n * k, 32));
  on_every_isa([&] {
    std::vector<float> dx(m * k), alone(m * some), of_all;
    product_dx(pool_of_two(), {dy.data(), n}, {w.data(), k}, m, n, k, {dx.data(), k}, false);
    product_dx(serial_executor(), {dy.data(), n}, {w.data() + first, k}, m, n, some, {alone.data(), some}, false);
    for (int64_t r = 0; r < m; ++r) of_all.insert(of_all.end(), &dx[size_t(r * k + first)], &dx[size_t(r * k)] + k);
    EXPECT_TRUE(same_bits(of_all, alone));
  });
}

TEST(ProductGradients, CarryInfinitiesAndNansToTheirElementsOnly) {
  constexpr int64_t m = 5, n = 7, k = 35;
  auto dy = normal(m * n, 41), x = normal(m * k, 42), w = normal(n * k, 43);
  dy[2 * n + 3] = INFINITY, w[4 * k + 33] = NAN, x[1 * k + 6] = -INFINITY;
  const auto check = [&](const auto& dy, const auto& x, const auto& w) {
    std::vector<float> dx(m * k), dw(n * k);
    product_dx(pool_of_two(), {dy.data(), n}, {w.data(), k}, m, n, k, {dx.data(), k}, false);
    product_dw(pool_of_two(), {dy.data(), n}, {x.data(), k}, m, n, k, {dw.data(), k}, false);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t j = 0; j < k; ++j)
        EXPECT_EQ(std::isfinite(dx[size_t(r * k + j)]), r != 2 && j != 33) << r << ", " << j;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < k; ++j)
        EXPECT_EQ(std::isfinite(dw[size_t(i * k + j)]), i != 3 && j != 6) << i << ", " << j;
  };
  on_every_isa([&] {
    check(dy, x, w);
    check(narrowed(dy), narrowed(x), narrowed(w));
  });
}

TEST(ProductGradients, ReadBf16AsItsWidenedValue) {
  constexpr int64_t m = 30, n = 45, k = 52;
  const auto dy = narrowed(normal(m * n, 18)), x = narrowed(normal(m * k, 19)), w = narrowed(normal(n * k, 20));
  const auto wide_dy = widened(dy), wide_x = widened(x), wide_w = widened(w);
  on_every_isa([&] {
    std::vector<float> dx(m * k), dw(n * k), db(n), wide_dx(m * k), wide_dw(n * k), wide_db(n);
    product_dx(serial_executor(), {dy.data(), n}, {w.data(), k}, m, n, k, {dx.data(), k}, false);
    product_dw(serial_executor(), {dy.data(), n}, {x.data(), k}, m, n, k, {dw.data(), k}, false);
    sum_rows(serial_executor(), {dy.data(), n}, m, n, db.data(), false);
    product_dx(serial_executor(), {wide_dy.data(), n}, {wide_w.data(), k}, m, n, k, {wide_dx.data(), k}, false);
    product_dw(serial_executor(), {wide_dy.data(), n}, {wide_x.data(), k}, m, n, k, {wide_dw.data(), k}, false);
    sum_rows(serial_executor(), {wide_dy.data(), n}, m, n, wide_db.data(), false);
    EXPECT_TRUE(same_bits(db, wide_db));
    EXPECT_TRUE(isa() >= Isa::avx512_vnni || (same_bits(dx, wide_dx) && same_bits(dw, wide_dw)));
    for (size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(dx[i], wide_dx[i], 2e-5);
    for (size_t i = 0; i < dw.size(); ++i) ASSERT_NEAR(dw[i], wide_dw[i], 2e-5);
    std::vector<bf16> short_dx(m * k);
    product_dx(serial_executor(), {dy.data(), n}, {w.data(), k}, m, n, k, {short_dx.data(), k}, false);
    EXPECT_TRUE(same_bits(short_dx, narrowed(dx)));
  });
}

}  // namespace
}  // namespace easydel::kernels
