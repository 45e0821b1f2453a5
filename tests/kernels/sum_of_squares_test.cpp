// Sums of squares: exact to double precision, and the same number on every instruction set and with any threads.
#include "easydel/kernels/fused.h"
#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

TEST(SumOfSquares, IsExactToDoublePrecisionAndOneNumber) {
  for (const int64_t n : {0, 1, 15, 100000}) {
    auto x = normal(n, 21);
    if (n > 1) x[0] = 1e30f, x[1] = 1e-30f;
    double exact = 0;
    for (const float v : x) exact += double(v) * double(v);
    const double first = sum_of_squares(serial_executor(), x.data(), DType::f32, n);
    EXPECT_NEAR(first, exact, 1e-12 * exact);
    on_every_isa([&] {
      EXPECT_EQ(sum_of_squares(pool_of_five(), x.data(), DType::f32, n), first);
      const auto y = narrowed(x);
      EXPECT_EQ(sum_of_squares(pool_of_two(), y.data(), DType::bf16, n),
                sum_of_squares(serial_executor(), widened(y).data(), DType::f32, n));
    });
  }
}

TEST(SumOfSquares, OfDifferencesIsThatOfTheirValues) {
  for (const int64_t n : {0, 1, 15, 100000}) {
    const auto x = normal(n, 22), z = normal(n, 23);
    const auto y = narrowed(x);
    const auto of = [&](const auto& left, const auto& right) {
      std::vector<float> values;
      for (size_t i = 0; i < left.size(); ++i) values.push_back(widen(left[i]) - widen(right[i]));
      return sum_of_squares(serial_executor(), values.data(), DType::f32, n);
    };
    on_every_isa([&] {
      const auto differences = [&](const auto& left, DType left_type, const auto& right, DType right_type) {
        return sum_of_squared_differences(pool_of_two(), left.data(), left_type, right.data(), right_type, n);
      };
      EXPECT_EQ(differences(x, DType::f32, z, DType::f32), of(x, z));
      EXPECT_EQ(differences(x, DType::f32, y, DType::bf16), of(x, y));
      EXPECT_EQ(differences(y, DType::bf16, z, DType::f32), of(y, z));
    });
  }
}

}  // namespace
}  // namespace easydel::kernels
