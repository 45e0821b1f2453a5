#include "easydel/nn/cut_codes.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "easydel/quant/quantize.h"
#include "support/ranks.h"

namespace easydel::nn {
namespace {

using collective::Team;

std::shared_ptr<const Team> join(const test::Meeting& meeting, std::vector<int64_t> sizes) {
  return Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), std::move(sizes)), {.file_store = meeting.file});
}

ops::Matrix codes(int64_t rows, const char* method) {
  at::manual_seed(3);
  return quant::coded(at::randn({rows, 128}), quant::format_of({.method = method}, "quantization"), at::kFloat);
}

bool same_bytes(const kernels::QuantizedWeight& a, const kernels::QuantizedWeight& b) {
  return a.n() == b.n() && a.k() == b.k() && a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

TEST(CutCodes, OfTwoRanksAreTheWholeAgain) {
  test::run_ranks(2, [](const test::Meeting& meeting) {
    const auto team = join(meeting, {1, 2, 1, 1, 1});
    for (const char* const method : {"nf4", "a8bit", "a4q"}) {
      const ops::Matrix whole = codes(192, method);
      ASSERT_TRUE(whole.quantized) << method;
      const CutCodes cut(whole, *team);
      EXPECT_TRUE(cut.is_cut()) << method;
      const ops::Matrix again = cut.whole();
      EXPECT_NE(again.quantized, whole.quantized);
      EXPECT_TRUE(same_bytes(*again.quantized, *whole.quantized)) << method;
    }
  });
}

TEST(CutCodes, StayWholeWherePartsAreNoPanels) {
  test::run_ranks(2, [](const test::Meeting& meeting) {
    const auto fsdp = join(meeting, {1, 2, 1, 1, 1});
    const ops::Matrix uneven = codes(96, "nf4");
    const CutCodes whole(uneven, *fsdp);
    EXPECT_FALSE(whole.is_cut());
    EXPECT_EQ(whole.whole().quantized, uneven.quantized);
    const ops::Matrix encoded = codes(192, "8bit");
    ASSERT_TRUE(encoded.encoded);
    EXPECT_FALSE(CutCodes(encoded, *fsdp).is_cut());
  });
}

TEST(CutCodes, AreWholeOnEveryRankAlongDp) {
  test::run_ranks(2, [](const test::Meeting& meeting) {
    EXPECT_FALSE(CutCodes(codes(192, "nf4"), *join(meeting, {2, 1, 1, 1, 1})).is_cut());
  });
}

}  // namespace
}  // namespace easydel::nn
