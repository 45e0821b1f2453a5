// Pages of sequences: what is taken, shared, copied, given back, and what a budget allows.
#include <gtest/gtest.h>

#include "easydel/esurge/cache_manager.h"
#include "esurge/fake_engine.h"
#include "support/data.h"

namespace easydel::test {
namespace {

constexpr int64_t gib = int64_t(1) << 30;

// One manager, and sequences that are computed in steps.
struct Cache {
  struct Running {
    std::vector<int32_t> text;
    SequencePages pages;
    int64_t computed = 0;
    TokenKeys keys() const { return {text, {}, false}; }
  };

  CacheManager manager;
  std::vector<PageOp> ops, after;
  CacheRoot root = {};

  Cache(std::vector<CacheGroup> groups, int64_t bytes, int64_t page_size = 4, bool index = true)
      : manager({page_size, std::move(groups), false}, bytes, index) {}

  CacheManager::Demand demand(int64_t tokens, int64_t forks = 0) const {
    CacheManager::Demand demand;
    demand.tokens = demand.max_tokens = tokens;
    demand.forks = forks;
    demand.step_tokens = 8;
    return demand;
  }
  std::optional<int64_t> admit(Running& r, int64_t limit = 1000) {
    const auto hit = manager.admit(r.pages, root, r.keys(), std::min<int64_t>(limit, int64_t(r.text.size()) - 1),
                                   demand(int64_t(r.text.size())), ops);
    if (hit) r.computed = *hit;
    return hit;
  }
  bool compute(Running& r, int64_t to) {
    if (!manager.extend(r.pages, r.computed, to, ops)) return false;
    r.computed = to;
    manager.advance(r.pages, r.keys(), to);
    return true;
  }
  void leave(Running& r) { manager.leave(r.pages, r.keys(), r.computed, true); }
  void check(std::initializer_list<const Running*> running) const {
    std::vector<const SequencePages*> all;
    for (const Running* r : running) all.push_back(&r->pages);
    manager.check_all(all, {});
  }
};

using Kind = PageOp::Kind;

TEST(CacheLayout, BoundsThePagesOfAWindow) {
  const CacheLayout layout{16, {full_group(), window_group(100), chunk_group(64), state_group()}, false};
  EXPECT_EQ(layout.max_pages(layout.groups[0], 1000, 32), 63);
  EXPECT_EQ(layout.max_pages(layout.groups[1], 1000, 32), 10);  // ceil(132 / 16) + 1
  EXPECT_EQ(layout.max_pages(layout.groups[2], 1000, 32), 7);
  EXPECT_EQ(layout.max_pages(layout.groups[1], 30, 32), 2);
  EXPECT_EQ(layout.max_pages(layout.groups[3], 1000, 32), 1);
  EXPECT_EQ(layout.groups[1].first_visible(99), 0);
  EXPECT_EQ(layout.groups[1].first_visible(100), 1);
  EXPECT_EQ(layout.groups[2].first_visible(63), 0);
  EXPECT_EQ(layout.groups[2].first_visible(64), 64);
}

TEST(CacheBudget, IsAShareOfTheFreeMemoryAndNeverMoreThanIsNeeded) {
  const CacheLayout layout{128, {full_group(1 << 20)}, false};
  const CacheBudget some = cache_budget(layout, 0.5, gib, 32, 8192);
  EXPECT_EQ(some.bytes, gib / 2);
  EXPECT_EQ(some.describe(layout), "KV cache: 512 MiB, 512 pages of 128 tokens (65536 tokens)");
  const CacheBudget all = cache_budget(layout, 0.5, 1000 * gib, 2, 8192);
  EXPECT_EQ(all.bytes, 2 * 64 << 20);
  EXPECT_EQ(all.describe(layout),
            "KV cache: 128 MiB, 128 pages of 128 tokens (16384 tokens); all sequences at their maximum length need no "
            "more");
}

TEST(CacheBudget, RefusesWhatCannotWork) {
  const CacheLayout layout{128, {full_group(1 << 20), window_group(512, 1 << 20)}, false};
  EXPECT_EQ(refusal([&] { cache_budget(layout, 0.5, 3 << 20, 32, 8192); }),
            "esurge.hbm_utilization: 0.5 of 3.00 MiB free memory is 1.50 MiB; one page of each kind takes 2.00 MiB\n"
            "    raise esurge.hbm_utilization, lower esurge.page_size, or free memory");
  EXPECT_EQ(refusal([&] { cache_budget(layout, 1.2, gib, 32, 8192); }),
            "esurge.hbm_utilization: 1.2 is out of range\n    expected a number above 0 and at most 1 (default 0.8)");
  EXPECT_EQ(refusal([&] {
              cache_budget({0, {full_group()}, false}, 0.5, gib, 32, 8192);
            }),
            "esurge.page_size: 0 is out of range\n    expected an integer from 1 to 4096 (default 128)");
}

TEST(CacheManager, TakesPagesAsTokensAreComputedAndGivesThemBack) {
  Cache cache({full_group(100)}, 1000, 4, false);
  Cache::Running a{text_of(10), {}};
  ASSERT_EQ(cache.admit(a), 0);
  EXPECT_EQ(cache.manager.pools().used_bytes(), 0);
  EXPECT_EQ(cache.manager.free_bytes(), 1000 - 300) << "the prompt's pages are reserved";
  ASSERT_TRUE(cache.compute(a, 3));
  EXPECT_EQ(cache.manager.pools().used_bytes(), 100);
  ASSERT_TRUE(cache.compute(a, 10));
  EXPECT_EQ(cache.manager.pools().used_bytes(), 300);
  cache.check({&a});
  cache.leave(a);
  EXPECT_EQ(cache.manager.pools().used_bytes(), 0);
  EXPECT_EQ(cache.manager.free_bytes(), 1000);
}

TEST(CacheManager, ReservesThePromptAndOnePageMore) {
  Cache cache({full_group(100)}, 1000, 4, false);
  Cache::Running a{text_of(8), {}};
  CacheManager::Demand demand = cache.demand(8);
  demand.max_tokens = 100;
  ASSERT_TRUE(cache.manager.admit(a.pages, cache.root, a.keys(), 7, demand, cache.ops));
  EXPECT_EQ(cache.manager.free_bytes(), 700);
  Cache::Running b{text_of(29), {}};
  EXPECT_FALSE(cache.admit(b)) << "8 pages do not fit beside 3 that are reserved";
  EXPECT_TRUE(b.pages.empty());
  EXPECT_EQ(cache.manager.free_bytes(), 700);
}

TEST(CacheManager, GivesAWindowsPagesBackAtTheStepThatPassesThem) {
  Cache cache({full_group(100), window_group(6, 10)}, 10000, 4, false);
  Cache::Running a{text_of(60), {}};
  ASSERT_EQ(cache.admit(a), 0);
  for (int64_t to = 8; to <= 56; to += 8) {
    ASSERT_TRUE(cache.compute(a, to));
    const int64_t first = cache.manager.layout().groups[1].first_visible(to) / 4;
    EXPECT_EQ(a.pages.first[1], first);
    for (int64_t i = 0; i < int64_t(a.pages.tables[1].size()); ++i)
      EXPECT_EQ(a.pages.tables[1][size_t(i)] >= 0, i >= first);
    cache.check({&a});
  }
  EXPECT_EQ(cache.manager.pools().counts(0).used(), 14);
  EXPECT_EQ(cache.manager.pools().counts(1).used(), 2);
}

TEST(CacheManager, GivesForksOnlyThePagesThatTheySee) {
  Cache cache({full_group(100), window_group(2, 60)}, 4000, 4);
  Cache::Running a{text_of(14), {}}, b{text_of(14), {}};
  CacheManager::Demand demand = cache.demand(14, 1);
  demand.max_tokens = 20, demand.step_tokens = 14;
  ASSERT_TRUE(cache.manager.admit(a.pages, cache.root, a.keys(), 13, demand, cache.ops));
  ASSERT_TRUE(cache.manager.extend(a.pages, 0, 14, cache.ops));
  // The pass over these tokens is not finished, so the first sequence still has all of its pages.
  cache.manager.fork(a.pages, b.pages, 9, demand, cache.ops, cache.after);
  EXPECT_EQ(a.pages.first, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(b.pages.first, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(b.pages.tables[1][1], -1);
  EXPECT_EQ(b.pages.tables[1][2], a.pages.tables[1][2]);
  cache.check({&a, &b});
}

TEST(CacheManager, SharesThePagesOfForksAndCopiesTheOneThatIsWritten) {
  Cache cache({full_group(100)}, 2000, 4);
  Cache::Running a{text_of(6), {}}, b{text_of(6), {}};
  CacheManager::Demand demand = cache.demand(6, 1);
  demand.max_tokens = 12;
  ASSERT_TRUE(cache.manager.admit(a.pages, cache.root, a.keys(), 5, demand, cache.ops));
  ASSERT_TRUE(cache.compute(a, 6));
  cache.manager.fork(a.pages, b.pages, 6, demand, cache.ops, cache.after);
  b.computed = 6;
  EXPECT_EQ(cache.manager.pools().used_bytes(), 200);
  cache.check({&a, &b});
  a.text.push_back(50), b.text.push_back(60);
  cache.ops.clear();
  ASSERT_TRUE(cache.compute(a, 7));
  ASSERT_EQ(cache.ops.size(), 1u);
  EXPECT_EQ(cache.ops[0].kind, Kind::copy);
  EXPECT_EQ(cache.ops[0].rows, 2);
  EXPECT_EQ(cache.ops[0].from, b.pages.tables[0][1]);
  EXPECT_EQ(cache.ops[0].to, a.pages.tables[0][1]);
  ASSERT_TRUE(cache.compute(b, 7));
  EXPECT_EQ(cache.ops.size(), 1u) << "the last owner writes where it is";
  EXPECT_EQ(a.pages.tables[0][0], b.pages.tables[0][0]);
  cache.check({&a, &b});
}

TEST(CacheManager, ReleasesMemoryOfOtherGroupsBeforeTheBudgetIsExceeded) {
  Cache cache({full_group(100), window_group(4, 100)}, 1000, 4, false);
  Cache::Running a{text_of(40), {}};
  CacheManager::Demand demand = cache.demand(16);
  ASSERT_TRUE(cache.manager.admit(a.pages, cache.root, a.keys(), 0, demand, cache.ops));
  ASSERT_TRUE(cache.compute(a, 16));  // 4 pages of each group, of which the window keeps one
  EXPECT_EQ(cache.manager.pools().resident_bytes(), 800);
  EXPECT_EQ(cache.manager.pools().used_bytes(), 500);
  for (int64_t to = 20; to <= 28; to += 4) ASSERT_TRUE(cache.compute(a, to));
  EXPECT_LE(cache.manager.pools().resident_bytes(), 1000);
  EXPECT_EQ(std::ranges::count(cache.ops, Kind::release, &PageOp::kind), 1);
  cache.check({&a});
}

TEST(CacheManager, RefusesToGrowWithoutRoomAndChangesNothing) {
  Cache cache({full_group(100)}, 300, 4, false);
  Cache::Running a{text_of(4), {}}, b{text_of(4), {}};
  ASSERT_EQ(cache.admit(a), 0);
  ASSERT_EQ(cache.admit(b), 0);
  ASSERT_TRUE(cache.compute(a, 4));
  ASSERT_TRUE(cache.compute(b, 4));
  for (int32_t i = 0; i < 5; ++i) a.text.push_back(i), b.text.push_back(i);
  ASSERT_TRUE(cache.compute(a, 5));
  EXPECT_FALSE(cache.compute(b, 5));
  cache.check({&a, &b});
  cache.leave(a);
  EXPECT_TRUE(cache.compute(b, 5));
}

TEST(CacheManager, TakesBackRejectedTokens) {
  Cache cache({full_group(100)}, 1000, 4);
  Cache::Running a{text_of(12), {}};
  ASSERT_EQ(cache.admit(a), 0);
  ASSERT_TRUE(cache.manager.extend(a.pages, 0, 11, cache.ops));
  EXPECT_EQ(cache.manager.pools().used_bytes(), 300);
  cache.manager.truncate(a.pages, 6);
  EXPECT_EQ(cache.manager.pools().used_bytes(), 200);
  cache.check({&a});
}

TEST(CacheManager, FindsAPageThatHasTwoStates) {
  Cache cache({full_group(100)}, 1000, 4);
  Cache::Running a{text_of(8), {}};
  ASSERT_EQ(cache.admit(a), 0);
  ASSERT_TRUE(cache.compute(a, 8));
  cache.check({&a});
  const SequencePages copy = a.pages;
  EXPECT_THROW(cache.manager.check_all(std::vector<const SequencePages*>{&a.pages, &copy}, {}), Bug);
  EXPECT_THROW(cache.manager.check_all({}, {}), Bug) << "a page that no table has is lost";
}

}  // namespace
}  // namespace easydel::test
