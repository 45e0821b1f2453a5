#include "easydel/nn/page_storage.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <array>

#include "easydel/base/error.h"
#include "easydel/ops/key_pages.h"

namespace easydel::nn {
namespace {

// Layer 0 sees everything, layer 1 a window of 4 tokens, layer 2 has a state beside keys that see everything.
CacheShape shape() {
  CacheShape out;
  out.layers = {{2, 8, 8}, {1, 8, 8, {}, 4}, {1, 4, 0, {{3, 2}}}};
  return out;
}

constexpr int64_t page_tokens = 4, heads = 2, dim = 8;

TEST(PageStorage, GroupsLayersByWhatTheySee) {
  const std::vector<PageGroup> groups = groups_of(shape());
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].layers, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(groups[1].layers, (std::vector<int64_t>{1}));
  EXPECT_TRUE(groups[2].states);
  EXPECT_EQ(groups[2].layers, (std::vector<int64_t>{2}));
  EXPECT_EQ(bytes_of(shape(), groups[2], page_tokens), 3 * 2 * 4);
  EXPECT_EQ(bytes_of(shape(), groups[0], page_tokens), (64 + 64 + 64) * 4);
}

struct Stored {
  PageStorage storage{shape(), page_tokens, groups_of(shape()), {4, 4, 3}};

  // A sequence of `length` tokens that adds `added`; -1: passed by the window.
  std::unique_ptr<Memory> memory(int64_t length, int64_t added, const std::vector<int32_t>& full,
                                 const std::vector<int32_t>& window, int32_t state) {
    const std::vector<int32_t> states = {state};
    const PageStorage::Sequence sequence{length, added, {full, window, states}};
    return storage.memory({&sequence, 1});
  }
  Tensor keys(const std::vector<int32_t>& full, int64_t length) {
    const auto all = memory(length, 0, full, {0, 1}, 0);
    const KeyPages pages = all->ranges(0);
    return ops::gather_pages(pages.keys, pages.tables[0], length);
  }
};

Tensor rows(int64_t tokens, double first) {
  return at::arange(tokens * heads * dim, at::kFloat).view({tokens, heads, dim}) + first;
}

TEST(PageStorage, CopiesTheFirstTokensOfAPageAndStates) {
  Stored stored;
  const auto memory = stored.memory(0, 6, {2, 0}, {0, 1}, 1);
  memory->write(0, 0, rows(6, 1), rows(6, 1000), nullptr);
  memory->take_states(2, 0).fill_(7);
  memory->finish();
  EXPECT_THROW(memory->finish(), Bug);
  EXPECT_TRUE(stored.keys({2, 0}, 6).equal(rows(6, 1)));
  stored.storage.copy(0, 0, 3, 1);
  EXPECT_TRUE(stored.keys({2, 3}, 5).equal(rows(6, 1).narrow(0, 0, 5)));
  EXPECT_FALSE(stored.keys({2, 3}, 6).equal(rows(6, 1)));
  stored.storage.copy(2, 1, 0, 0);
  const auto state = [&](int32_t id) { return stored.memory(0, 0, {}, {}, id)->take_states(2, 0); };
  EXPECT_TRUE(state(0).eq(7).all().item<bool>());
  stored.storage.clear(2, 1);
  EXPECT_TRUE(state(1).eq(0).all().item<bool>());
  EXPECT_TRUE(state(0).eq(7).all().item<bool>());
}

TEST(PageStorage, LendsTheStatesOfItsSequencesInTheirOrder) {
  Stored stored;
  const auto lend = [&](const std::array<int32_t, 2>& ids) {
    const std::vector<int32_t> first = {ids[0]}, second = {ids[1]}, page = {0}, other = {1};
    const std::array<PageStorage::Sequence, 2> sequences = {PageStorage::Sequence{0, 1, {page, page, first}},
                                                            PageStorage::Sequence{0, 1, {other, other, second}}};
    const auto memory = stored.storage.memory(sequences);
    const Tensor states = memory->take_states(2, 0);
    for (int64_t i = 0; i < 2; ++i) states[i] += double(10 * ids[size_t(i)] + i + 1);
    memory->put_states(2, 0, states);
  };
  lend({0, 1});
  lend({2, 0});
  const auto state = [&](int32_t id) {
    return stored.memory(0, 0, {}, {}, id)->take_states(2, 0).flatten()[0].item<float>();
  };
  EXPECT_EQ(state(0), 1 + 2);
  EXPECT_EQ(state(1), 12);
  EXPECT_EQ(state(2), 21);
}

TEST(PageStorage, RefusesAPageThatIsMissing) {
  Stored stored;
  EXPECT_THROW(stored.memory(0, 5, {1}, {0, 1}, 0), Bug);
  EXPECT_THROW(stored.memory(4, 1, {1, 0}, {0, -1}, 0), Bug);
  // Behind the window no page is needed.
  EXPECT_NO_THROW(stored.memory(8, 1, {1, 0, 2}, {-1, 0, 1}, 0));
}

TEST(PageStorage, GivesMemoryBack) {
  CacheShape big;
  big.layers = {{8, 64, 64}};
  PageStorage storage(big, 128, groups_of(big), {2});
  const std::vector<int32_t> table = {1};
  const PageStorage::Sequence sequence{0, 1, {table}};
  const auto memory = storage.memory({&sequence, 1});
  const Tensor keys = memory->ranges(0).keys;
  keys.fill_(3);
  storage.release(0, 1);
  EXPECT_TRUE(keys[1].eq(0).all().item<bool>());
  EXPECT_TRUE(keys[0].eq(3).all().item<bool>());
}

}  // namespace
}  // namespace easydel::nn
