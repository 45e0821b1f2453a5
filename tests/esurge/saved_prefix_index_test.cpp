// The prefix index over a restart: what is found afterwards, and files that are not what they should be.
#include "easydel/esurge/saved_prefix_index.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "esurge/fake_engine.h"
#include "support/data.h"

namespace easydel::test {
namespace {

constexpr int64_t all_bytes = 100000;

FakeEngine engine_of(const CacheLayout& layout, int64_t bytes = all_bytes) {
  SchedulerConfig config;
  config.check_every_step = true;
  config.max_num_batched_tokens = 16;
  return {config, layout, bytes, {.vocabulary = 5, .roles_matter = layout.roles_matter}};
}

std::vector<CacheLayout> layouts() {
  return {{4, {full_group()}, false},
          {4, {full_group()}, true},
          {4, {full_group(), window_group(6)}, false},
          {4, {window_group(5), chunk_group(8)}, false},
          {4, {full_group(), state_group()}, false},
          {4, {state_group()}, false},
          {1, {full_group()}, false}};
}

// Prompts that share beginnings, with roots and answers.
std::vector<SchedulerRequest> requests_of(uint32_t seed, int count) {
  std::mt19937 random(seed);
  std::vector<SchedulerRequest> out;
  for (int i = 0; i < count; ++i) {
    std::vector<TokenId> prompt = text_of(1 + int64_t(random() % 30), 1 + TokenId(random() % 2) * 100);
    for (size_t j = random() % 5; j-- > 0;) prompt.push_back(TokenId(random() % 4));
    out.push_back(request_of(std::move(prompt), 1 + int64_t(random() % 12)));
    if (random() % 4 == 0) out.back().root.salt = "s" + std::to_string(random() % 2);
  }
  return out;
}

int64_t found(const FakeEngine& engine, const SchedulerRequest& request) {
  return engine.scheduler.cache().cached(request.root, {request.prompt, {}, engine.layout.roles_matter},
                                         int64_t(request.prompt.size()) - 1);
}

TEST(SavedPrefixIndex, FindsAfterARestartWhatWasThereBefore) {
  for (const CacheLayout& layout : layouts()) {
    FakeEngine before = engine_of(layout);
    for (const SchedulerRequest& request : requests_of(1, 25)) before.add(request), before.run();
    FakeEngine after = engine_of(layout);
    after.restore_index(before);
    after.scheduler.check_pages();
    EXPECT_EQ(after.scheduler.cache().index().nodes(), before.scheduler.cache().index().nodes());
    int64_t hits = 0;
    for (const SchedulerRequest& request : requests_of(2, 60)) {
      EXPECT_EQ(found(after, request), found(before, request));
      hits += found(after, request);
    }
    EXPECT_GT(hits, 50);
    // The fake model compares every row that it reads.
    for (const SchedulerRequest& request : requests_of(2, 60)) {
      const int64_t hit = found(after, request);
      const RequestId id = after.add(request);
      after.run();
      EXPECT_EQ(after.answer(id).end.cached_tokens, hit);
      EXPECT_EQ(after.answer(id).tokens, after.model.answer(request, 0));
    }
  }
}

TEST(SavedPrefixIndex, KeepsWhatWasUsedLastIfNotAllFits) {
  for (const CacheLayout& layout : layouts()) {
    FakeEngine before = engine_of(layout);
    const std::vector<SchedulerRequest> requests = requests_of(3, 40);
    for (const SchedulerRequest& request : requests) before.add(request), before.run();
    const int64_t used = before.scheduler.cache().pools().used_bytes();
    for (const int64_t share : {2, 3, 5}) {
      FakeEngine after = engine_of(layout, std::max<int64_t>(used / share, 1500));
      after.restore_index(before);
      after.scheduler.check_pages();
      EXPECT_LE(after.scheduler.cache().pools().used_bytes(), used / share + 1500);
      const SchedulerRequest& last = requests.back();
      EXPECT_GE(found(after, last), std::min<int64_t>(found(before, last), 4));
      for (const SchedulerRequest& request : requests_of(4, 20)) {
        const RequestId id = after.add(request);
        after.run();
        EXPECT_EQ(after.answer(id).tokens, after.model.answer(request, 0));
      }
    }
  }
}

TEST(SavedPrefixIndex, EvictsInTheOrderInWhichPagesWereUsedBeforeTheRestart) {
  const CacheLayout layout{4, {full_group()}, false};
  FakeEngine before = engine_of(layout);
  for (const TokenId first : {100, 200, 300}) before.add(request_of(text_of(8, first))), before.run();
  before.add(request_of(text_of(8, 100)));  // used again
  before.run();
  FakeEngine after = engine_of(layout, 6 * 100);
  after.restore_index(before);
  after.add(request_of(text_of(4, 900), 3));
  after.run();
  EXPECT_LT(found(after, request_of(text_of(8, 200))), 7);
  EXPECT_EQ(found(after, request_of(text_of(8, 300))), 7);
  EXPECT_EQ(found(after, request_of(text_of(8, 100))), 7);
}

TEST(SavedPrefixIndex, RefusesBytesThatAreNotOne) {
  const CacheLayout layout{4, {full_group(), window_group(6), state_group()}, true};
  FakeEngine before = engine_of(layout);
  for (const SchedulerRequest& request : requests_of(5, 12)) before.add(request), before.run();
  std::vector<std::vector<int32_t>> ids;
  const std::string good = before.scheduler.cache().index().save(ids).encode(layout);
  const std::string remedy = "\n    remove it; the engine makes a new one";
  const auto problem = [&](std::string_view bytes) { return refusal([&] { decode_prefix_index(bytes, layout); }); };
  EXPECT_EQ(problem(""), "prefix cache: its index is damaged: it is of another kind or version" + remedy);
  EXPECT_EQ(problem(good.substr(0, good.size() - 1)), "prefix cache: its index is damaged: it ends too early" + remedy);
  EXPECT_EQ(problem(good + "x"), "prefix cache: its index is damaged: it goes on after its end" + remedy);
  EXPECT_EQ(refusal([&] {
              decode_prefix_index(good, {8, layout.groups, true});
            }),
            "prefix cache: its index is damaged: it is of another layout" + remedy);
  // Every cut, and random changes: an error, or an index that can be used.
  for (size_t size = 0; size < good.size(); ++size) EXPECT_NE(problem(good.substr(0, size)), "(nothing was refused)");
  std::mt19937 random(11);
  int64_t refused = 0, taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (size_t change = 1 + random() % 3; change-- > 0;) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = char(random());
          break;
        case 1:
          bytes[at] = char(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.replace(at & ~size_t(3), 4, "\xff\xff\xff\xff");
          break;
        default:
          std::swap_ranges(bytes.begin() + ptrdiff_t(at / 2), bytes.begin() + ptrdiff_t(at / 2 + 4),
                           bytes.begin() + ptrdiff_t(random() % (bytes.size() - 4)));
      }
    }
    try {
      const SavedPrefixIndex index = decode_prefix_index(bytes, layout);
      ++taken;
      Scheduler scheduler({}, layout, {all_bytes, false});
      scheduler.restore_index(index);
      scheduler.check_pages();
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 1000) << "stamps, tokens and texts may be anything";
}

TEST(SavedPrefixIndex, RefusesAnIndexThatCannotBe) {
  const CacheLayout layout{4, {full_group(), state_group()}, false};
  using Node = SavedPrefixIndex::Node;
  const auto problem = [&](const std::function<void(SavedPrefixIndex&)>& change) {
    SavedPrefixIndex index{
        {CacheRoot{}},
        {Node{-1, 0, {1, 2, 3, 4}, {0, -1}, {{2, 0, 5}, {4, 1, 6}}, 7}, Node{0, 0, {5}, {1, -1}, {}, 8}},
        {2, 2}};
    change(index);
    const std::string text = refusal([&] { decode_prefix_index(index.encode(layout), layout); });
    const std::string before = "prefix cache: its index is damaged: ";
    return text.starts_with(before) ? text.substr(before.size(), text.find('\n') - before.size()) : text;
  };
  EXPECT_EQ(problem([](SavedPrefixIndex&) {}), "(nothing was refused)");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[1].pages[0] = 0; }),
            "page 0 of group 0 is not one of 2, or is named twice");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[1].pages[0] = 2; }),
            "page 2 of group 0 is not one of 2, or is named twice");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[1].pages[0] = -1; }), "a node with page -1 of group 0");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[0].states[0].rows = 4; }), "a state after 4 of 4 tokens");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[0].states[1].rows = 5; }), "a state after 5 of 4 tokens");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[0].states[1].number = 0; }),
            "page 0 of group 1 is not one of 2, or is named twice");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[1].parent = 1; }), "a node comes before its parent");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[1].parent = -1, index.nodes[1].root = 3; }),
            "a node has a root that is not there");
  EXPECT_EQ(
      problem([](SavedPrefixIndex& index) { index.nodes[0].tokens.pop_back(), index.nodes[0].states.pop_back(); }),
      "part of a page has children");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[1].tokens = {1, 2, 3, 4, 5}; }), "a page of 5 tokens");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.nodes[1].tokens = {1u << 31}; }),
            "a token has a role, and roles do not matter");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) {
              index.nodes[1].parent = -1, index.nodes[1].tokens = {1, 2};
            }),
            "a page is the beginning of another one");
  EXPECT_EQ(problem([](SavedPrefixIndex& index) { index.roots.push_back(index.roots[0]); }), "a root comes twice");
}

TEST(SavedPrefixIndex, SaysInOneLineWhyAManifestDoesNotFit) {
  const CacheLayout layout{4, {full_group()}, false};
  const PrefixCacheIdentity now{"abc", "bf16 pairs", "bf16"};
  const Value manifest = parse_json(to_json(prefix_cache_manifest(now, layout, "index")));
  const auto why = [&](const PrefixCacheIdentity& identity, const CacheLayout& shape, const char* index = "index") {
    return why_prefix_cache_does_not_fit(manifest, identity, shape, index);
  };
  EXPECT_EQ(why(now, layout), "");
  EXPECT_EQ(why({"abd", now.order, now.format}, layout), "it belongs to other weights (abc instead of abd)");
  EXPECT_EQ(why({now.weights, "fp32", now.format}, layout),
            "its order of additions is another one (bf16 pairs instead of fp32)");
  EXPECT_EQ(why({now.weights, now.order, "int8"}, layout),
            "its keys and values have another format (bf16 instead of int8)");
  EXPECT_EQ(why(now, {8, layout.groups, false}), "its page_size is another one (4 instead of 8)");
  EXPECT_EQ(why(now, {4, layout.groups, true}), "it belongs to another kind of model (false instead of true)");
  EXPECT_EQ(why(now, {4, {full_group(), state_group()}, false}), "its layers keep other pages");
  EXPECT_EQ(why(now, layout, "other"), "its index is damaged");
  EXPECT_EQ(why_prefix_cache_does_not_fit(Value::map(), now, layout, "index"), "it is not a prefix cache");
  EXPECT_EQ(why_prefix_cache_does_not_fit(Value::list(), now, layout, "index"), "it is not a prefix cache");
}

}  // namespace
}  // namespace easydel::test
