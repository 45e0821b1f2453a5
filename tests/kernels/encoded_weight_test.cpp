#include "easydel/kernels/encoded_weight.h"

#include "easydel/kernels/grouped.h"
#include "kernels/support.h"

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
    const std::vector<bf16> small = narrowed(values);
    for (const int64_t m : {1, 3, 40, 150}) {
      const std::vector<float> x = normal(m * k, 7), bias = normal(n, 8);
      const std::vector<bf16> small_x = narrowed(x);
      const std::vector<int64_t> begin = {0, m};
      on_every_isa([&] {
        std::vector<float> found(m * n), wanted(m * n);
        const GroupWeights encoded{.n = n, .k = k, .encoded = {&weight, 1}};
        grouped_product(serial_executor(), begin, encoded, {x.data(), k}, {found.data(), n}, bias.data(),
                        AccumulationOrder::fp32_chain);
        grouped_product(serial_executor(), begin, {.n = n, .k = k, .rows = {values.data(), k}}, {x.data(), k},
                        {wanted.data(), n}, bias.data(), AccumulationOrder::fp32_chain);
        EXPECT_TRUE(same_bits(found, wanted));
        for (const auto order : {AccumulationOrder::bf16_tile, AccumulationOrder::bf16_pairs}) {
          std::vector<bf16> narrow_found(m * n), narrow_wanted(m * n);
          const GroupWeights in_codes{.n = n, .k = k, .dtype = DType::bf16, .encoded = {&weight, 1}};
          grouped_product(serial_executor(), begin, in_codes, {small_x.data(), k}, {narrow_found.data(), n},
                          bias.data(), order);
          grouped_product(serial_executor(), begin, {.n = n, .k = k, .rows = {small.data(), k}, .dtype = DType::bf16},
                          {small_x.data(), k}, {narrow_wanted.data(), n}, bias.data(), order);
          EXPECT_TRUE(same_bits(narrow_found, narrow_wanted));
        }
      });
    }
  }
}

}  // namespace
}  // namespace easydel::kernels
