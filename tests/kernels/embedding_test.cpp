#include "easydel/kernels/embedding.h"

#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

TEST(EmbeddingRows, AreThoseOfTheTableInEitherNumberType) {
  for (const int64_t n : {1, 16, 77, 300}) {
    constexpr int64_t table_rows = 20;
    const auto table = normal(table_rows * n, 71);
    const auto short_table = narrowed(table);
    std::vector<int64_t> indices;
    for (int64_t r = 0; r < 50; ++r) indices.push_back(r * 7 % table_rows);
    std::vector<float> expected;
    for (const int64_t i : indices) expected.insert(expected.end(), table.begin() + i * n, table.begin() + (i + 1) * n);
    on_every_isa([&] {
      std::vector<float> y(expected.size()), wide(expected.size());
      std::vector<bf16> rounded(expected.size()), same(expected.size());
      gather_rows(pool_of_two(), {table.data(), n}, indices.data(), 50, n, {y.data(), n});
      gather_rows(pool_of_two(), {table.data(), n}, indices.data(), 50, n, {rounded.data(), n});
      gather_rows(pool_of_two(), {short_table.data(), n}, indices.data(), 50, n, {same.data(), n});
      gather_rows(pool_of_two(), {short_table.data(), n}, indices.data(), 50, n, {wide.data(), n});
      EXPECT_TRUE(same_bits(y, expected) && same_bits(rounded, narrowed(expected)));
      EXPECT_TRUE(same_bits(same, narrowed(expected)) && same_bits(wide, widened(narrowed(expected))));
    });
  }
}

TEST(EmbeddingRows, GatherTheirGradientsInOneOrder) {
  for (const int64_t n : {1, 130, 300}) {
    constexpr int64_t table_rows = 5, rows = 200;
    const auto dy = narrowed(normal(rows * n, 72));
    std::vector<int64_t> indices;
    for (int64_t r = 0; r < rows; ++r) indices.push_back(r * r % 4);  // the last row of the table is never used
    std::vector<float> expected(size_t(table_rows * n), 0.25f);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < n; ++i) expected[size_t(indices[size_t(r)] * n + i)] += widen(dy[size_t(r * n + i)]);
    on_every_isa([&] {
      for (Executor* const executor : {&serial_executor(), &pool_of_five()}) {
        std::vector<float> sum(expected.size(), 0.25f);
        add_rows(*executor, {dy.data(), n}, indices.data(), rows, n, {sum.data(), n});
        EXPECT_TRUE(same_bits(sum, expected));
      }
    });
  }
}

TEST(EmbeddingRows, OfNoIndicesAreNone) {
  const std::vector<float> table(8);
  float y = 5;
  gather_rows(serial_executor(), {table.data(), 4}, nullptr, 0, 4, {&y, 4});
  add_rows(serial_executor(), {table.data(), 4}, nullptr, 0, 4, {&y, 4});
  EXPECT_EQ(y, 5);
}

}  // namespace
}  // namespace easydel::kernels
