// Codes of keys and values: what rows become, on every instruction set.
#include <gtest/gtest.h>

#include <array>

#include "kernels/coded_support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

// The nearest e4m3 by trying all; of two equally near ones the even code.
uint8_t nearest_e4m3(float x) {
  uint8_t best = 0;
  float least = INFINITY;
  for (int bits = 0; bits < 0x7f; ++bits) {
    const float distance = std::fabs(widen(e4m3{uint8_t(bits)}) - std::fabs(x));
    if (distance < least || (distance == least && bits % 2 == 0)) best = uint8_t(bits), least = distance;
  }
  return uint8_t(best | (std::signbit(x) ? 0x80 : 0));
}

TEST(Codes, OfE4m3AreTheNearestNumbers) {
  std::vector<float> all;
  for (int bits = 0; bits < 0x7f; ++bits) {
    const float x = widen(e4m3{uint8_t(bits)}), next = bits < 0x7e ? widen(e4m3{uint8_t(bits + 1)}) : x;
    for (const float y :
         {x, (x + next) / 2, std::nextafter((x + next) / 2, 0.0f), std::nextafter((x + next) / 2, 999.0f)})
      if (y <= 448) all.push_back(y), all.push_back(-y);
  }
  for (const float x : normal(2000, 1, 20)) all.push_back(x);
  for (const float x : all) EXPECT_EQ(int(narrow_e4m3(x).bits), int(nearest_e4m3(x))) << x;
  EXPECT_EQ(widen(e4m3{0x7e}), 448.0f);
  EXPECT_EQ(widen(e4m3{0x01}), 0x1p-9f);
  EXPECT_EQ(widen(e4m3{0x88}), -0x1p-6f);
}

class CodesOf : public ::testing::TestWithParam<DType> {
 protected:
  DType codes() const { return GetParam(); }
  float largest() const { return codes() == DType::i8 ? 127.0f : codes() == DType::i4 ? 7.0f : 448.0f; }
  CodedRows of_row(const std::vector<float>& row) const { return encoded(row, 1, int64_t(row.size()), codes()); }
};
INSTANTIATE_TEST_SUITE_P(Formats, CodesOf, ::testing::Values(DType::i8, DType::i4, DType::e4m3),
                         [](const auto& codes) { return name_of(codes.param); });

TEST_P(CodesOf, KeepTheGreatestNumberAndRoundTheOthers) {
  const std::vector<float> row = normal(77, 2, 3);
  const CodedRows coded = of_row(row);
  float size = 0;
  for (const float x : row) size = std::max(size, std::fabs(x));
  EXPECT_EQ(coded.scales[0], size / largest());
  const std::vector<float> back = coded.decoded();
  for (size_t i = 0; i < row.size(); ++i) {
    const float most =
        is_whole(codes()) ? size / (2 * largest()) * 1.0001f : std::max(std::fabs(row[i]) / 16, size * 0x1p-18f);
    EXPECT_NEAR(back[i], row[i], most);
    if (std::fabs(row[i]) == size) {
      EXPECT_EQ(std::fabs(coded.code(0, int64_t(i))), largest());
    }
  }
}

TEST_P(CodesOf, OfOneValueZerosAndDenormalsAreFinite) {
  EXPECT_EQ(of_row({-3}).code(0, 0), -largest());
  EXPECT_EQ(of_row({5, 5, 5}).decoded()[1], 5 / largest() * largest());
  for (const std::vector<float>& row : {std::vector<float>(40, 0.0f), {1e-45f, -1e-40f}, {0x1p-101f, 0x1p-126f}}) {
    const CodedRows coded = of_row(row);
    EXPECT_EQ(coded.scales[0], 0.0f);
    for (const float x : coded.decoded()) EXPECT_EQ(x, 0.0f);
  }
  const CodedRows greatest = of_row({widen(bf16{0x7f7f}), -1.0f, 0x1p-140f});
  EXPECT_EQ(greatest.code(0, 0), largest());
  EXPECT_TRUE(std::isfinite(greatest.decoded()[0]));
  EXPECT_EQ(greatest.code(0, 1), 0.0f);
}

// Of whole vectors and of others, and of two heads.
TEST_P(CodesOf, GroupsAreThoseOfEachGroupAlone) {
  for (const int64_t size : {1, 5, 12, 16, 40, 64}) {
    constexpr int64_t groups = 3;
    const std::vector<float> rows = normal(4 * groups * size, 9, 3);
    std::vector<float> expected;
    for (auto group = rows.begin(); group != rows.end(); group += size)
      for (const float x : of_row({group, group + size}).decoded()) expected.push_back(x);
    on_every_isa([&] {
      const CodedRows coded = encoded(rows, 2, groups * size, codes(), serial_executor(), groups);
      EXPECT_TRUE(same_bits(coded.decoded(), expected)) << size;
    });
  }
}

TEST_P(CodesOf, KeepANaNToItsRow) {
  for (const float strange : {NAN, -NAN, INFINITY, -INFINITY}) {
    std::vector<float> rows = normal(4 * 20, 3);
    const CodedRows clean = encoded(rows, 2, 20, codes());
    rows[2 * 20 + 7] = strange;  // token 1, head 0
    const CodedRows coded = encoded(rows, 2, 20, codes());
    for (int64_t r = 0; r < 4; ++r)
      if (r == 2)
        EXPECT_TRUE(std::isnan(coded.scales[2]));
      else
        EXPECT_EQ(coded.scales[size_t(r)], clean.scales[size_t(r)]);
    for (int64_t r = 0; r < 4; ++r)
      for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(coded.code(r, i), r == 2 ? 0 : clean.code(r, i));
  }
}

TEST_P(CodesOf, HaveTheSameBitsOnEveryInstructionSetAndTeam) {
  for (const bool rough : {false, true})
    for (const int64_t dim : {1, 15, 16, 33, 64, 100}) {
      const std::vector<float> wide = rough ? hostile(7 * 3 * dim, 4) : normal(7 * 3 * dim, 4);
      const auto both = [&](Executor& executor) {
        return std::array{encoded(wide, 3, dim, codes(), executor), encoded(narrowed(wide), 3, dim, codes(), executor)};
      };
      const auto first = both(serial_executor());
      on_every_isa([&] {
        for (Executor* const executor : {&serial_executor(), &pool_of_two()}) {
          const auto again = both(*executor);
          for (size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(again[i].data, first[i].data) << dim;
            EXPECT_TRUE(same_bits(again[i].scales, first[i].scales)) << dim;
          }
        }
      });
    }
}

// The rotated row, rounded to the dtype of the keys, becomes codes.
TEST_P(CodesOf, AreMadeOfRotatedKeys) {
  constexpr int64_t tokens = 5, heads = 2, dim = 24, pairs = 8;
  const std::vector<float> cos = normal(tokens * pairs, 5), sin = normal(tokens * pairs, 6);
  for (const bool interleaved : {false, true}) {
    const std::vector<bf16> x = narrowed(normal(tokens * heads * dim, 7));
    std::vector<bf16> rotated(x.size());
    const int64_t bytes = row_bytes(codes(), dim);
    std::vector<uint8_t> data(size_t(tokens * heads * bytes));
    std::vector<float> scales(size_t(tokens * heads));
    PagedRows plain;
    plain.from = {x.data(), DType::bf16, heads * dim, dim};
    plain.to = {rotated.data(), DType::bf16, heads * dim, dim};
    plain.heads = heads, plain.dim = dim, plain.pairs = pairs, plain.interleaved = interleaved;
    plain.cos = cos.data(), plain.sin = sin.data();
    PagedRows coded = plain;
    coded.to = {data.data(), codes(), heads * bytes, bytes};
    coded.scales = scales.data(), coded.scale_token_stride = heads, coded.scale_head_stride = 1;
    std::vector<PagePlace> places;
    for (int32_t t = 0; t < tokens; ++t) places.push_back({0, t});
    const std::array both = {plain, coded};
    write_pages(pool_of_two(), both, places);
    const CodedRows expected = encoded(rotated, heads, dim, codes());
    EXPECT_EQ(data, expected.data);
    EXPECT_TRUE(same_bits(scales, expected.scales));
  }
}

}  // namespace
}  // namespace easydel::kernels
