#include "easydel/kernels/encoded_weight.h"

#include "kernels/encoded_support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

// Bytes with a scale for each row.
struct Rows final : EncodedRows {
  Rows(int64_t rows, int64_t columns) : columns(columns), scales(normal(rows, 5)) {
    std::mt19937 generator(6);
    for (int64_t i = 0; i < rows * columns; ++i) codes.push_back(int8_t(generator() % 256));
  }
  int64_t k() const override { return columns; }
  void decode(int64_t first, int64_t step, int64_t count, float* to) const override {
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t row = first + r * step;
        to[r * columns + i] = float(codes[size_t(row * columns + i)]) * scales[size_t(row)];
      }
  }
  int64_t columns;
  std::vector<float> scales;
  std::vector<int8_t> codes;
};

// Every second row, as the halves of a weight with interleaved rows.
TEST(EncodedWeight, GivesTheBitsOfTheProductWithItsDecodedValues) {
  constexpr int64_t n = 70;
  for (const int64_t k : {75, 96}) {
    const auto rows = std::make_shared<Rows>(2 * n + 1, k);
    const EncodedWeight weight{rows, n, 1, 2};
    std::vector<float> values(n * k);
    decode(serial_executor(), weight, {values.data(), k});
    for (int64_t r = 0; r < n; ++r) {
      auto one = std::vector<float>(size_t(k));
      rows->decode(2 * r + 1, 1, 1, one.data());
      EXPECT_TRUE(same_bits(one, std::vector<float>(values.begin() + r * k, values.begin() + (r + 1) * k)));
    }
    for (const int64_t m : {1, 3, 40, 150}) expect_products_of_plain(weight, values, m, n, k);
  }
}

}  // namespace
}  // namespace easydel::kernels
