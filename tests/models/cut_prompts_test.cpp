// A token's bits do not depend on how its prompt was cut into passes, nor on where its keys are stored, family by
// family.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>

#include "easydel/base/error.h"
#include "easydel/models/model.h"
#include "easydel/nn/page_storage.h"
#include "models/golden_cases.h"
#include "models/shuffled_memory.h"
#include "support/data.h"

namespace easydel::models {
namespace {

// One sequence in the engine's storage: ids in a shuffled order, pages that a window or chunk has passed taken away,
// and NaN wherever nothing was written.
class GroupedPages {
 public:
  GroupedPages(const nn::CacheShape& shape, int64_t length, int64_t page_tokens)
      : shape_(shape), page_tokens_(page_tokens), groups_(nn::groups_of(shape)) {
    const int64_t pages = (length + page_tokens - 1) / page_tokens + 5;
    storage_ = std::make_unique<nn::PageStorage>(shape, page_tokens, groups_, std::vector(groups_.size(), pages));
    std::mt19937 random(7);
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<int32_t>& table = tables_.emplace_back();
      for (int32_t page = 0; page < pages; ++page) table.push_back(page);
      std::shuffle(table.begin(), table.end(), random);
      if (groups_[g].states) storage_->clear(int(g), table[0]);
    }
    const auto memory = next(0);
    for (size_t layer = 0; layer < shape.layers.size(); ++layer) {
      if (shape.layers[layer].kv_heads == 0) continue;
      const nn::KeyPages all = memory->ranges(int64_t(layer));
      for (const Tensor& one : {all.keys, all.values})
        if (one.defined()) one.fill_(std::numeric_limits<double>::quiet_NaN());
    }
  }

  std::unique_ptr<nn::Memory> next(int64_t count) {
    nn::PageStorage::Sequence sequence{length_, count, {}};
    for (size_t g = 0; g < groups_.size(); ++g) {
      sequence.tables.emplace_back(tables_[g]);
      if (groups_[g].states) continue;
      const nn::CacheLayer& layer = shape_.layers[size_t(groups_[g].layers[0])];
      const int64_t first = layer.window > 0  ? std::max<int64_t>(0, length_ - layer.window + 1)
                            : layer.chunk > 0 ? length_ / layer.chunk * layer.chunk
                                              : 0;
      const int64_t passed = first / page_tokens_;
      passed_ += passed - std::count(tables_[g].begin(), tables_[g].end(), -1);
      std::fill_n(tables_[g].begin(), passed, -1);
    }
    auto memory = storage_->memory({&sequence, 1});
    length_ += count;
    return memory;
  }
  int64_t passed() const { return passed_; }

 private:
  nn::CacheShape shape_;
  int64_t page_tokens_, length_ = 0, passed_ = 0;
  std::vector<nn::PageGroup> groups_;
  std::unique_ptr<nn::PageStorage> storage_;
  std::vector<std::vector<int32_t>> tables_;
};

class CutPrompts : public testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    LoadOptions options;
    options.dtype = dtype_setting(GetParam().dtype, "dtype");
    model_ = load_model(test::test_data("hf_goldens/" + GetParam().golden), options);
  }

  // Includes the tokens after the prompt.
  int64_t longest() const {
    const int64_t positions = model_->max_positions();
    return positions > 0 ? positions - generated : 1000;
  }

  Tensor tokens_of(int64_t length) const { return at::arange(length, at::kLong) * 5 % 23 + 3; }

  // Hidden states of a prompt of `length` tokens that is read in these pieces, then of generated tokens one by one.
  // next(count) is the memory of a pass that adds this many tokens.
  template <class Next>
  Tensor run(int64_t length, const std::vector<int64_t>& pieces, const Next& next) const {
    const at::NoGradGuard no_gradient;
    const Tensor tokens = tokens_of(length + generated);
    std::vector<int64_t> counts = pieces;
    counts.insert(counts.end(), size_t(generated), 1);
    std::vector<Tensor> out;
    int64_t begin = 0;
    for (const int64_t count : counts) {
      const auto memory = next(count);
      nn::Pass pass = nn::Pass::next(*memory, {length});
      pass.stream().lengths = {std::max(length, begin + count)};
      out.push_back(model_->forward({tokens.slice(0, begin, begin + count)}, pass).hidden);
      begin += count;
    }
    return at::cat(out);
  }
  Tensor cached(int64_t length, const std::vector<int64_t>& pieces, int64_t page_tokens) const {
    const auto shape = model_->make_cache(1, 1)->shape();
    nn::Cache cache(shape, 1, length + generated, page_tokens);
    return run(length, pieces, [&](int64_t count) { return cache.next({0}, {count}); });
  }

  void expect_same(int64_t length, const std::vector<std::vector<int64_t>>& cuts) const {
    if (length > longest()) return;
    const Tensor whole = cached(length, {length}, nn::Cache::default_page_tokens);
    for (const std::vector<int64_t>& pieces : cuts) {
      const Tensor found = cached(length, pieces, nn::Cache::default_page_tokens);
      const double apart = (found - whole).abs().max().item<double>();
      const auto where = [&] {
        return str(length, " tokens, cut first at ", pieces[0], " of ", pieces.size(), ": ", apart);
      };
      EXPECT_TRUE(found.equal(whole)) << where();
    }
  }

  static std::vector<int64_t> pieces_of(int64_t length, int64_t size) {
    std::vector<int64_t> out;
    for (int64_t begin = 0; begin < length; begin += size) out.push_back(std::min(size, length - begin));
    return out;
  }

  static constexpr int64_t generated = 3;
  std::shared_ptr<Model> model_;
};

TEST_P(CutPrompts, HaveTheBitsOfTheWholePrompt) {
  expect_same(17, {{1, 16}, {16, 1}, {8, 9}, pieces_of(17, 3)});
  expect_same(70, {{1, 69}, {69, 1}, {33, 37}, pieces_of(70, 16)});
}

// By hand: every cut of prompts around the sizes of blocks.
TEST_P(CutPrompts, DISABLED_HaveTheBitsOfTheWholePromptWhereverTheyAreCut) {
  for (const int64_t length : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 70}) {
    std::vector<std::vector<int64_t>> cuts;
    for (int64_t first = 1; first < length; ++first) cuts.push_back({first, length - first});
    for (const int64_t size : {1, 3, 16}) cuts.push_back(pieces_of(length, size));
    expect_same(length, cuts);
  }
}

TEST_P(CutPrompts, HaveTheSameBitsInAnotherMemoryAndInPagesOfAnySize) {
  const int64_t length = std::min<int64_t>(17, longest());
  const Tensor expected = cached(length, {length}, nn::Cache::default_page_tokens);
  for (const int64_t page_tokens : {1, 5, 64})
    EXPECT_TRUE(cached(length, {length}, page_tokens).equal(expected)) << "pages of " << page_tokens;
  test::ShuffledMemory memory(model_->make_cache(1, 1)->shape(), length + generated);
  const Tensor found = run(length, {length}, [&](int64_t count) {
    memory.add(count);
    return &memory;
  });
  EXPECT_TRUE(found.equal(expected)) << (found - expected).abs().max().item<double>();
}

TEST_P(CutPrompts, HaveTheSameBitsInTheEnginesPages) {
  const int64_t length = std::min<int64_t>(40, longest());
  const std::vector<int64_t> pieces = pieces_of(length, 9);
  const Tensor expected = cached(length, pieces, nn::Cache::default_page_tokens);
  const auto shape = model_->make_cache(1, 1)->shape();
  for (const int64_t page_tokens : {1, 5, 16, 128}) {
    GroupedPages pages(shape, length + generated, page_tokens);
    const Tensor found = run(length, pieces, [&](int64_t count) { return pages.next(count); });
    EXPECT_TRUE(found.equal(expected)) << "pages of " << page_tokens << ", " << pages.passed() << " passed";
  }
}

INSTANTIATE_TEST_SUITE_P(All, CutPrompts, testing::ValuesIn(causal_goldens()), name_of_case);

}  // namespace
}  // namespace easydel::models
