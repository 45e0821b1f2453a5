// Keys and values in pages: gathering returns what was written, and every backend attends to pages as to contiguous
// rows.
#include "easydel/ops/key_pages.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <limits>

#include "easydel/ops/attention.h"

namespace easydel::ops {
namespace {

constexpr int64_t page_tokens = 4;

// Two sequences of 9 and 6 keys with interleaved pages; unused places are NaN.
struct Paged {
  Tensor k = at::randn({15, 2, 8}), v = at::randn({15, 2, 6});
  Tensor key_pages = pages(8), value_pages = pages(6);
  std::vector<int32_t> tables[2] = {{4, 0, 6}, {2, 5}};

  Paged() {
    std::vector<PagePlace> places;
    for (const auto& [table, count] : {std::pair(tables[0], 9), std::pair(tables[1], 6)})
      for (int t = 0; t < count; ++t) places.push_back({table[size_t(t / page_tokens)], int32_t(t % page_tokens)});
    write_pages(key_pages, k, nullptr, value_pages, v, places);
  }
  static Tensor pages(int64_t dim) {
    return at::full({7, 2, page_tokens, dim}, std::numeric_limits<float>::quiet_NaN());
  }
};

TEST(KeyPages, AreGatheredAsTheyWereWritten) {
  const Paged p;
  EXPECT_TRUE(gather_pages(p.key_pages, p.tables[0], 9).equal(p.k.slice(0, 0, 9)));
  EXPECT_TRUE(gather_pages(p.value_pages, p.tables[1], 6).equal(p.v.slice(0, 9, 15)));
  EXPECT_EQ(gather_pages(p.key_pages, p.tables[1], 0).sizes(), at::IntArrayRef({0, 2, 8}));
}

TEST(KeyPages, TakeRowsOfAnotherTypeAndLayout) {
  const Tensor rows = at::randn({3, 8, 2}).transpose(1, 2), pages = at::empty({2, 2, 2, 8}, at::kBFloat16);
  const std::vector<PagePlace> places = {{1, 0}, {1, 1}, {0, 0}};
  write_pages(pages, rows, nullptr, {}, {}, places);
  EXPECT_TRUE(gather_pages(pages, std::vector<int32_t>{1, 0}, 3).equal(rows.to(at::kBFloat16)));
}

TEST(KeyPages, AreAttendedToByEveryBackendAsOneStretchIs) {
  using enum AttentionMechanism;
  const Paged p;
  AttentionSpec spec;
  spec.scale = 0.4;
  for (const int64_t window : {0, 3}) {
    spec.window = window;
    const Tensor q = at::randn({5, 4, 8});  // the last three tokens of one, the last two of the other
    const AttentionRange whole[] = {{0, 3, 0, 9, {}}, {3, 5, 9, 15, {}}};
    const AttentionRange paged[] = {{0, 3, 0, 9, p.tables[0]}, {3, 5, 0, 6, p.tables[1]}};
    for (const AttentionMechanism backend : {flash_attn2, blockwise, vanilla, sdpa}) {
      AttentionCall call;
      call.sequences = whole;
      const Tensor expected = attention(spec, call, q, p.k, p.v, backend);
      call.sequences = paged;
      EXPECT_TRUE(attention(spec, call, q, p.key_pages, p.value_pages, backend).equal(expected))
          << config::word_of(backend);
    }
  }
}

// Other backends attend to what the codes stand for; the kernel rounds queries to int8, too.
TEST(KeyPages, OfCodesAreAttendedToByEveryBackend) {
  using enum AttentionMechanism;
  const Paged plain;
  AttentionSpec spec;
  spec.scale = 0.4;
  const Tensor q = at::randn({5, 4, 8});
  const AttentionRange paged[] = {{0, 3, 0, 9, plain.tables[0]}, {3, 5, 0, 6, plain.tables[1]}};
  for (const auto& [type, groups] : {std::pair(at::kChar, 1),
                                     {at::kByte, 1},
                                     {at::kFloat8_e4m3fn, 1},
                                     {at::kChar, 2},
                                     {at::kByte, 2},
                                     {at::kFloat8_e4m3fn, 2}}) {
    const bool pairs = type == at::kByte;  // int4 values of int8 keys
    const auto pages = [&, own = groups](int64_t bytes, at::ScalarType of) {
      return Pages(at::empty({7, 2, page_tokens, bytes}, of), Paged::pages(own));
    };
    const Pages keys = pages(8, pairs ? at::kChar : type), values = pages(pairs ? 3 : 6, type);
    std::vector<PagePlace> places;
    for (const auto& [table, count] : {std::pair(plain.tables[0], 9), std::pair(plain.tables[1], 6)})
      for (int t = 0; t < count; ++t) places.push_back({table[size_t(t / page_tokens)], int32_t(t % page_tokens)});
    write_pages(keys, plain.k, nullptr, values, plain.v, places);
    AttentionCall call;
    call.sequences = paged;
    call.key_scales = keys.scales, call.value_scales = values.scales;
    const Tensor reference = attention(spec, call, q, keys.rows, values.rows, vanilla);
    for (const AttentionMechanism backend : {flash_attn2, blockwise, sdpa}) {
      const Tensor out = attention(spec, call, q, keys.rows, values.rows, backend);
      const bool rounds_queries = type != at::kFloat8_e4m3fn && groups == 1;
      const double most = backend == flash_attn2 && rounds_queries ? 5e-2 : 1e-5;
      EXPECT_LE((out - reference).abs().max().item<double>(), most) << config::word_of(backend);
    }
  }
}

TEST(KeyPages, GiveNoGradient) {
  const Paged p;
  const Tensor q = at::randn({1, 4, 8}).requires_grad_(true);
  const AttentionRange range[] = {{0, 1, 0, 9, p.tables[0]}};
  AttentionCall call;
  call.sequences = range;
  AttentionSpec spec;
  EXPECT_ANY_THROW(attention(spec, call, q, p.key_pages, p.value_pages, AttentionMechanism::flash_attn2));
}

}  // namespace
}  // namespace easydel::ops
