// Products with weights in codes against those with their values, for the tests.
#pragma once

#include <vector>

#include "easydel/kernels/encoded_weight.h"
#include "easydel/kernels/grouped.h"
#include "kernels/support.h"

namespace easydel::kernels::testing {

// Products of m rows with `weight` [n, k] have, on every instruction set and in every order, the bits of products with
// its `values`.
inline void expect_products_of_plain(const EncodedWeight& weight, const std::vector<float>& values, int64_t m,
                                     int64_t n, int64_t k) {
  const std::vector<bf16> small = narrowed(values);
  const std::vector<float> x = normal(m * k, 7), bias = normal(n, 8);
  const std::vector<bf16> small_x = narrowed(x);
  const std::vector<int64_t> begin = {0, m};
  on_every_isa([&] {
    std::vector<float> found(m * n), expected(m * n);
    const GroupWeights encoded{.n = n, .k = k, .encoded = {&weight, 1}};
    grouped_product(serial_executor(), begin, encoded, {x.data(), k}, {found.data(), n}, bias.data(),
                    AccumulationOrder::fp32_chain);
    grouped_product(serial_executor(), begin, {.n = n, .k = k, .rows = {values.data(), k}}, {x.data(), k},
                    {expected.data(), n}, bias.data(), AccumulationOrder::fp32_chain);
    EXPECT_TRUE(same_bits(found, expected)) << m << " rows";
    for (const auto order : {AccumulationOrder::bf16_tile, AccumulationOrder::bf16_pairs}) {
      std::vector<bf16> narrow_found(m * n), narrow_expected(m * n);
      const GroupWeights in_codes{.n = n, .k = k, .dtype = DType::bf16, .encoded = {&weight, 1}};
      grouped_product(serial_executor(), begin, in_codes, {small_x.data(), k}, {narrow_found.data(), n}, bias.data(),
                      order);
      grouped_product(serial_executor(), begin, {.n = n, .k = k, .rows = {small.data(), k}, .dtype = DType::bf16},
                      {small_x.data(), k}, {narrow_expected.data(), n}, bias.data(), order);
      EXPECT_TRUE(same_bits(narrow_found, narrow_expected)) << m << " rows";
    }
  });
}

}  // namespace easydel::kernels::testing
