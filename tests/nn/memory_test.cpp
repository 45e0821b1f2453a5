// nn::Cache and its pages: reading returns what was written, pages are shared and copied before they are written, and
// nothing is lost or leaked.
#include "easydel/nn/memory.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/nn/cache.h"
#include "easydel/ops/key_pages.h"

namespace easydel::nn {
namespace {

constexpr int64_t kv_heads = 2, k_dim = 4, v_dim = 6, page_tokens = 4;

CacheShape shape(std::vector<std::vector<int64_t>> states = {}) {
  CacheShape out;
  out.layers = {{kv_heads, k_dim, v_dim, {}}, {kv_heads, k_dim, 0, std::move(states)}};
  return out;
}

// Rows [tokens, kv_heads, dim] that tell every element of every token apart.
Tensor rows(int64_t first, int64_t tokens, int64_t dim) {
  const Tensor each = at::arange(tokens * kv_heads * dim, at::kFloat).view({tokens, kv_heads, dim});
  return each * 0.001 + at::arange(first, first + tokens, at::kFloat).view({-1, 1, 1});
}

// Adds tokens to slots in one pass; rows of slot i begin with number first[i].
void add(Cache& cache, const std::vector<int64_t>& slots, const std::vector<int64_t>& tokens,
         const std::vector<int64_t>& first) {
  const auto memory = cache.next(slots, tokens);
  std::vector<Tensor> keys, values;
  for (size_t i = 0; i < slots.size(); ++i)
    keys.push_back(rows(first[i], tokens[i], k_dim)), values.push_back(rows(first[i], tokens[i], v_dim));
  memory->write(0, 0, at::cat(keys), at::cat(values), nullptr);
  memory->write(1, 0, at::cat(keys) * 2, {}, nullptr);
  memory->finish();
}

struct Found {
  Tensor keys, values, second;
};
Found found(Cache& cache, int64_t slot) {
  const auto memory = cache.next({slot}, {0});
  const KeyPages first = memory->ranges(0), second = memory->ranges(1);
  const int64_t length = cache.length(slot);
  EXPECT_FALSE(second.values.defined());
  return {ops::gather_pages(first.keys, first.tables[0], length),
          ops::gather_pages(first.values, first.tables[0], length),
          ops::gather_pages(second.keys, second.tables[0], length)};
}
void expect_rows(Cache& cache, int64_t slot, const Tensor& keys, const Tensor& values) {
  const Found is = found(cache, slot);
  EXPECT_TRUE(is.keys.equal(keys));
  EXPECT_TRUE(is.values.equal(values));
  EXPECT_TRUE(is.second.equal(keys * 2));
}

int64_t pages_in_use(const Cache& cache) {
  // Each page: keys and values of layer 0, keys of layer 1, each from a multiple of 64 elements on.
  return cache.bytes() / ((64 + 64 + 64) * 4);
}

TEST(Memory, ReadsBackWhatSequencesOfSeveralPassesWrote) {
  Cache cache(shape(), 3, 8, page_tokens);
  add(cache, {2, 0}, {5, 1}, {100, 200});
  add(cache, {0, 2}, {6, 4}, {300, 400});
  EXPECT_EQ(cache.length(2), 9);
  EXPECT_EQ(cache.length(1), 0);
  expect_rows(cache, 2, at::cat({rows(100, 5, k_dim), rows(400, 4, k_dim)}),
              at::cat({rows(100, 5, v_dim), rows(400, 4, v_dim)}));
  expect_rows(cache, 0, at::cat({rows(200, 1, k_dim), rows(300, 6, k_dim)}),
              at::cat({rows(200, 1, v_dim), rows(300, 6, v_dim)}));
  EXPECT_EQ(pages_in_use(cache), 3 + 2);
}

TEST(Memory, GrowsBeyondWhatWasReserved) {
  Cache cache(shape(), 1, 1, page_tokens);
  add(cache, {0}, {3}, {1});
  add(cache, {0}, {40}, {1000});
  expect_rows(cache, 0, at::cat({rows(1, 3, k_dim), rows(1000, 40, k_dim)}),
              at::cat({rows(1, 3, v_dim), rows(1000, 40, v_dim)}));
}

TEST(Memory, SharesThePagesOfACopyAndCopiesTheOneThatIsWritten) {
  Cache cache(shape(), 2, 16, page_tokens);
  add(cache, {0}, {10}, {1});
  EXPECT_EQ(pages_in_use(cache), 3);
  cache.copy(0, 1);
  EXPECT_EQ(cache.length(1), 10);
  EXPECT_EQ(pages_in_use(cache), 3);
  add(cache, {0}, {1}, {500});
  EXPECT_EQ(pages_in_use(cache), 4);  // the half full page alone
  add(cache, {1}, {1}, {700});
  EXPECT_EQ(pages_in_use(cache), 4);  // which has one owner by now
  const auto with = [](int64_t last, int64_t dim) { return at::cat({rows(1, 10, dim), rows(last, 1, dim)}); };
  expect_rows(cache, 0, with(500, k_dim), with(500, v_dim));
  expect_rows(cache, 1, with(700, k_dim), with(700, v_dim));
}

TEST(Memory, DoesNotCopyAFullPage) {
  Cache cache(shape(), 2, 16, page_tokens);
  add(cache, {0}, {8}, {1});
  cache.copy(0, 1);
  add(cache, {0, 1}, {1, 1}, {50, 60});
  EXPECT_EQ(pages_in_use(cache), 2 + 2);
  expect_rows(cache, 1, at::cat({rows(1, 8, k_dim), rows(60, 1, k_dim)}),
              at::cat({rows(1, 8, v_dim), rows(60, 1, v_dim)}));
}

TEST(Memory, GivesPagesBackWithTheirLastOwner) {
  Cache cache(shape(), 3, 16, page_tokens);
  add(cache, {0}, {9}, {1});
  cache.copy(0, 1);
  cache.copy(1, 2);
  cache.truncate(0, 0);
  EXPECT_EQ(pages_in_use(cache), 3);
  cache.truncate(1, 5);
  cache.truncate(2, 5);
  EXPECT_EQ(pages_in_use(cache), 2);
  expect_rows(cache, 2, rows(1, 5, k_dim), rows(1, 5, v_dim));
  add(cache, {2}, {2}, {80});
  expect_rows(cache, 1, rows(1, 5, k_dim), rows(1, 5, v_dim));
  cache.copy(0, 1);  // the source is empty
  cache.truncate(2, 0);
  EXPECT_EQ(pages_in_use(cache), 0);
}

TEST(Memory, ForgetsAPassThatWasNotFinished) {
  Cache cache(shape(), 2, 16, page_tokens);
  add(cache, {0}, {6}, {1});
  cache.next({0}, {9})->write(0, 0, rows(90, 9, k_dim), rows(90, 9, v_dim), nullptr);
  EXPECT_EQ(cache.length(0), 6);
  cache.copy(0, 1);
  add(cache, {0, 1}, {1, 1}, {20, 30});
  const auto with = [](int64_t last, int64_t dim) { return at::cat({rows(1, 6, dim), rows(last, 1, dim)}); };
  expect_rows(cache, 0, with(20, k_dim), with(20, v_dim));
  expect_rows(cache, 1, with(30, k_dim), with(30, v_dim));
  cache.truncate(0, 0);
  cache.truncate(1, 0);
  EXPECT_EQ(pages_in_use(cache), 0);
}

TEST(Memory, WritesSomeHeadsOfALayer) {
  Cache cache(shape(), 1, 8, page_tokens);
  const auto memory = cache.next({0}, {6});
  const Tensor all = rows(1, 6, k_dim);
  memory->write(1, 1, all.narrow(1, 1, 1), {}, nullptr);
  memory->write(1, 0, all.narrow(1, 0, 1), {}, nullptr);
  memory->finish();
  EXPECT_TRUE(found(cache, 0).second.equal(all));
}

TEST(Memory, RotatesKeysOnTheWay) {
  CacheShape even;
  even.layers = {{kv_heads, 8, 4, {}}};
  ops::RopeSpec spec;
  spec.dim = 6;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    even.type = type;
    Cache cache(even, 1, 8, page_tokens);
    const Tensor keys = rows(1, 7, 8).to(type), values = rows(1, 7, 4).to(type);
    const ops::RopeTable table = ops::rope_table(spec, at::arange(7, at::kLong), {0, 7});
    const auto memory = cache.next({0}, {7});
    memory->write(0, 0, keys, values, &table);
    const KeyPages pages = memory->ranges(0);
    EXPECT_TRUE(ops::gather_pages(pages.keys, pages.tables[0], 7).equal(ops::rope(keys, table)));
    EXPECT_TRUE(ops::gather_pages(pages.values, pages.tables[0], 7).equal(values));
  }
}

// Of slot `slot`: the first layer's keys and values, and the second's keys, as their codes stand for.
std::vector<Tensor> decoded(Cache& cache, int64_t slot) {
  const auto memory = cache.next({slot}, {0});
  const KeyPages first = memory->ranges(0), second = memory->ranges(1);
  const int64_t length = cache.length(slot);
  return {ops::gather_pages({first.keys, first.key_scales}, first.tables[0], length),
          ops::gather_pages({first.values, first.value_scales}, first.tables[0], length),
          ops::gather_pages({second.keys, second.key_scales}, second.tables[0], length)};
}

// Sharing, copying on write and growing move codes together with their scales.
TEST(Memory, KeepsCodesWithTheirScales) {
  for (const auto& [type, group_size] : {std::pair(at::kChar, 0),
                                         {at::kByte, 0},
                                         {at::kFloat8_e4m3fn, 0},
                                         {at::kChar, 2},
                                         {at::kByte, 2},
                                         {at::kFloat8_e4m3fn, 2}}) {
    CacheShape coded = shape();
    coded.type = type, coded.group_size = group_size;
    const double step = type == at::kFloat8_e4m3fn ? 1.0 / 16 : 1.0 / 254;
    const double value_step = type == at::kByte ? 1.0 / 14 : step;
    Cache cache(coded, 3, 4, page_tokens), other(coded, 1, 64, page_tokens);
    add(cache, {0}, {10}, {1});
    const std::vector<Tensor> before = decoded(cache, 0);
    EXPECT_LE((before[0] - rows(1, 10, k_dim)).abs().max().item<double>(), 11 * step);
    EXPECT_LE((before[1] - rows(1, 10, v_dim)).abs().max().item<double>(), 11 * value_step);
    EXPECT_LE((before[2] - 2 * rows(1, 10, k_dim)).abs().max().item<double>(), 22 * step);
    add(other, {0}, {7}, {1});
    add(other, {0}, {3}, {8});
    cache.copy(0, 1);
    add(cache, {1, 2}, {9, 30}, {500, 600});  // copies the half full page, and storage grows
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(decoded(cache, 0)[i].equal(before[i])) << i;
      EXPECT_TRUE(decoded(cache, 1)[i].slice(0, 0, 10).equal(before[i])) << i;
    }
    EXPECT_LE((decoded(cache, 1)[1].slice(0, 10) - rows(500, 9, v_dim)).abs().max().item<double>(), 510 * value_step);
    add(cache, {0}, {1}, {700});
    EXPECT_LE((decoded(cache, 1)[1].slice(0, 10) - rows(500, 9, v_dim)).abs().max().item<double>(), 510 * value_step);
    EXPECT_TRUE(decoded(cache, 0)[0].slice(0, 0, 10).equal(before[0]));
  }
}

TEST(Memory, PlacesTheArraysOfAPage) {
  CacheShape coded = shape();
  coded.type = at::kChar;
  const std::vector<int64_t> both = {0, 1}, one = {1};
  const PageLayout layout(coded, page_tokens, both), second(coded, page_tokens, one);
  // Codes [2 heads][4 tokens][4 or 6] take 64 bytes, scales [2][4] of keys and of values 256.
  EXPECT_EQ(layout.page_bytes(), (64 + 64 + 256 + 256) + (64 + 256));
  EXPECT_EQ(second.page_bytes(), 64 + 256);
  const Tensor storage = at::zeros({3, layout.page_bytes()}, at::kByte);
  const std::vector<LayerPages> pages = layout.views(storage);
  pages[0].value_scales[1][1][3] = 2.0;
  EXPECT_EQ(storage.view(at::kFloat)[1][(64 + 64 + 256) / 4 + 1 * page_tokens + 3].item<float>(), 2.0f);
  EXPECT_FALSE(pages[1].values.defined() || pages[1].value_scales.defined());
  PageLayout::copy(pages, 1, 2, 4);
  EXPECT_EQ(pages[0].value_scales[2][1][3].item<float>(), 2.0f);
  EXPECT_FALSE(second.views(at::zeros({1, second.page_bytes()}, at::kByte))[0].keys.defined());
  // Groups of 2: scales [2][4][2 or 3] take 256 bytes, too.
  coded.group_size = 2;
  const PageLayout grouped(coded, page_tokens, both);
  EXPECT_EQ(grouped.page_bytes(), layout.page_bytes());
  const std::vector<LayerPages> of_groups = grouped.views(storage);
  EXPECT_EQ(of_groups[0].key_scales.sizes(), at::IntArrayRef({3, 2, page_tokens, k_dim / 2}));
  EXPECT_EQ(of_groups[0].value_scales.sizes(), at::IntArrayRef({3, 2, page_tokens, v_dim / 2}));
  // A layer whose parts share no scales has groups of its own.
  coded.group_size = 0, coded.layers[1].key_group = 1;
  EXPECT_EQ(PageLayout(coded, page_tokens, both).views(storage)[1].key_scales.sizes(),
            at::IntArrayRef({3, 2, page_tokens, k_dim}));
}

TEST(Memory, RefusesCodesThatAModelCannotKeep) {
  const auto told = [](const std::vector<CacheLayer>& layers, at::Device device = at::kCPU,
                       const CacheSetting& format = CacheFormat::int8) {
    try {
      check_cache_format(format, layers, device);
      return std::string();
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(told({{2, 64, 64, {}}, {}, {0, 0, 0, {{4}}}}), "");
  EXPECT_EQ(told({{0, 0, 0, {{4}}}}),
            "quantization.kv_cache: this model keeps no keys and values, only recurrent states, which stay fp32\n"
            "    leave it out");
  const CacheLayer latent{.kv_heads = 1, .k_dim = 576, .key_group = 64};
  EXPECT_EQ(told({latent}), "");
  EXPECT_EQ(told({latent}, at::kCPU, CacheFormat::e4m3), "");
  EXPECT_EQ(told({latent}, at::kCPU, CacheFormat::int4_values),
            "quantization.kv_cache: multi-head latent attention keeps no values that could have four bits\n"
            "    choose 8bit");
  EXPECT_EQ(told({{2, 96, 48, {}}, {2, 64, 64, {}}}, at::kCPU, {CacheFormat::int8, 16}), "");
  EXPECT_EQ(told({{2, 96, 48, {}}, {2, 64, 64, {}}}, at::kCPU, {CacheFormat::int8, 32}),
            "quantization.kv_cache.group_size: groups of 32 do not divide the vectors that this model keeps of a token "
            "and head\n    a divisor of 16 works, for example 16");
  EXPECT_EQ(told({latent}, at::kCPU, {CacheFormat::e4m3, 96}),
            "quantization.kv_cache.group_size: groups of 96 do not divide the vectors that this model keeps of a token "
            "and head\n    a divisor of 64 works, for example 64");
  EXPECT_EQ(told({{1, 1056, 1056, {}}}, at::kCPU, {CacheFormat::int8, 32}), "");
  EXPECT_EQ(told({{1, 1056, 1056, {}}}),
            "quantization.kv_cache: heads of 1056 dimensions are not built yet\n    leave it out");
  EXPECT_EQ(told({{2, 64, 64, {}}}, at::kCUDA),
            "quantization.kv_cache: a quantized KV cache on a GPU is not built yet\n    set loader.device to cpu");
  EXPECT_EQ(told({{2, 64, 64, {}}, {2, 64, 33, {}}}, at::kCPU, CacheFormat::int4_values),
            "quantization.kv_cache: values of 33 dimensions in four bits are not built yet\n    choose 8bit");
  EXPECT_EQ(told({{2, 63, 64, {}}}, at::kCPU, CacheFormat::int4_values), "");
  for (const CacheFormat format : {CacheFormat::int8, CacheFormat::int4_values, CacheFormat::e4m3}) {
    EXPECT_EQ(told({{2, 64, 64, {}}}, at::kCPU, format), "");
    EXPECT_EQ(told({{0, 0, 0, {{4}}}}, at::kCPU, format),
              "quantization.kv_cache: this model keeps no keys and values, only recurrent states, which stay fp32\n"
              "    leave it out");
  }
  EXPECT_NO_THROW(check_cache_format(CacheFormat::bf16, {{1, 576, 0, {}}}, at::kCUDA));
}

TEST(Memory, LendsStatesOfNeighboursAndOfOthersAlike) {
  Cache cache(shape({{2, 2}}), 4, 8, page_tokens);
  for (const std::vector<int64_t>& slots : {std::vector<int64_t>{1, 2}, {3, 0}}) {
    const auto memory = cache.next(slots, {1, 1});
    const Tensor states = memory->take_states(1, 0);
    EXPECT_TRUE(states.eq(0).all().item<bool>());
    for (int64_t i = 0; i < 2; ++i) states[i].fill_(double(10 + slots[size_t(i)]));
    memory->put_states(1, 0, states);
    memory->finish();
  }
  const Tensor all = cache.next({0, 1, 2, 3}, {0, 0, 0, 0})->take_states(1, 0);
  for (int64_t slot = 0; slot < 4; ++slot) EXPECT_TRUE(all[slot].eq(double(10 + slot)).all().item<bool>()) << slot;
  cache.copy(3, 1);
  EXPECT_TRUE(cache.next({1}, {0})->take_states(1, 0).eq(13).all().item<bool>());
  cache.truncate(1, 0);
  EXPECT_TRUE(cache.next({1}, {0})->take_states(1, 0).eq(0).all().item<bool>());
  EXPECT_THROW(
      {
        add(cache, {2}, {2}, {1});
        cache.truncate(2, 1);
      },
      Bug);
}

TEST(Memory, IsFinishedOnce) {
  Cache cache(shape(), 1, 8, page_tokens);
  const auto memory = cache.next({0}, {1});
  memory->finish();
  EXPECT_THROW(memory->finish(), Bug);
}

}  // namespace
}  // namespace easydel::nn
