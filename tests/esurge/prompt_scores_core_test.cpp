// Log-probabilities of prompts that come from the prefix index have the bits of a prompt that is computed whole.
#include <gtest/gtest.h>

#include <algorithm>

#include "esurge/same_bits.h"

namespace easydel::esurge {
namespace {

class PromptScoresFromTheIndex : public SameBits {
 protected:
  Request scored(std::vector<TokenId> prompt, int64_t count) const {
    Request request;
    request.prompt = std::move(prompt);
    request.sampling.prompt_logprobs = count, request.sampling.logprobs = 0;
    request.sampling.temperature = 0, request.sampling.max_tokens = 2, request.sampling.ignore_eos = true;
    request.sampling.output_kind = OutputKind::final_only;
    return request;
  }
};

TEST_P(PromptScoresFromTheIndex, HaveTheSameBitsAfterHitsOfEveryLength) {
  Random random(31);
  const auto token = [&] { return TokenId(random.from(3, model_->vocabulary() - 1)); };
  std::vector<TokenId> text;
  for (int i = 0; i < 40; ++i) text.push_back(token());
  std::vector<Request> all = {scored(text, 2)};
  std::vector<int64_t> shared = {0}, counts = {2};
  for (int64_t length = 0; length <= 40; ++length) {
    std::vector<TokenId> prompt(text.begin(), text.begin() + length);
    for (int64_t i = random.from(1, 20); i > 0; --i) prompt.push_back(token());
    // Another token than the one that followed.
    if (length < 40 && prompt[size_t(length)] == text[size_t(length)]) prompt[size_t(length)] ^= 1;
    shared.push_back(length), counts.push_back(length % 4);
    all.push_back(scored(prompt, counts.back()));
  }
  const std::vector<std::string> expected = alone(all);
  for (const int64_t page_size : {1, 16, 128}) {
    EngineSetup own = setup(page_size, 64 * 128 / page_size);
    own.config.max_num_batched_tokens = 16;  // states are kept where a part of a prompt ends with a page
    StepEngine engine(own);
    const std::vector<CacheGroup> groups = engine.info().options.layout.groups;
    // Prompts of two lengths share nothing where frequencies depend on it.
    const bool full = model_->turning_length() == 0 && std::ranges::all_of(groups, [](const CacheGroup& group) {
                        return group.kind == CacheGroup::Kind::full;
                      });
    int64_t hits = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      RequestOutput output;
      engine.add(all[i], [&](RequestOutput last) { output = std::move(last); });
      while (engine.step()) {
      }
      EXPECT_EQ(bits_of(output), expected[i]) << shared[i] << " shared tokens, pages of " << page_size;
      hits += output.cached_tokens;
      const int64_t most = std::max<int64_t>(0, shared[i] - 1);
      EXPECT_LE(output.cached_tokens, most);
      if (counts[i] <= 2 && full) {
        EXPECT_EQ(output.cached_tokens, most);
      }
    }
    // Tokens that may be taken for generated ones share a page of 128 with their states at the prompts' ends alone.
    if (page_size < 128 || full) {
      EXPECT_GT(hits, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PromptScoresFromTheIndex, testing::ValuesIn(subjects()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace easydel::esurge
