// The pages of a draft model.
#include "easydel/esurge/draft_model.h"

#include <gtest/gtest.h>

#include "easydel/esurge/step_engine.h"
#include "easydel/generation/sampler.h"
#include "easydel/models/model.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

std::shared_ptr<models::Model> story() { return models::load_model(test::test_data("models/stories260K-hf"), {}); }

TEST(DraftModel, GuessesTheSameAfterItHasGivenUpItsPages) {
  DraftModel draft(story(), 16);
  draft.reserve({40 * draft.layout().groups.at(0).page_bytes, false});
  std::vector<TokenId> tokens = {1, 403, 407, 261, 378, 432, 395};
  const auto guessed = [&] {
    std::vector<DraftModel::Wish> wishes;
    wishes.push_back({{1, 0}, tokens, 4, 3, [](std::span<const float> logits, std::span<const TokenId>) {
                        return generation::likeliest(logits);
                      }});
    draft.draft(wishes, 100);
    return wishes[0].drafts;
  };
  const std::vector<TokenId> first = guessed();
  EXPECT_EQ(first.size(), 3u);
  EXPECT_GT(draft.resident_bytes(), 0);
  draft.release();
  EXPECT_EQ(draft.resident_bytes(), 0);
  EXPECT_EQ(guessed(), first);
}

TEST(DraftModel, GivesUpPagesThatAWindowHasPassed) {
  models::LoadOptions options;
  options.overrides = Value::map();
  options.overrides.set("max_position_embeddings", Value::integer(512));
  const std::shared_ptr<models::Model> model = models::load_model(test::test_data("hf_goldens/gemma3_text"), options);
  const auto make = [&] {
    auto out = std::make_unique<DraftModel>(model, 4);
    out->reserve({int64_t(1) << 26, false});
    return out;
  };
  const auto guessed = [&](DraftModel& draft, const std::vector<TokenId>& tokens) {
    std::vector<DraftModel::Wish> wishes;
    wishes.push_back({{1, 0}, tokens, 8, 2, [](std::span<const float> logits, std::span<const TokenId>) {
                        return generation::likeliest(logits);
                      }});
    draft.draft(wishes, 200);
    EXPECT_EQ(wishes[0].drafts.size(), 2u);
    return wishes[0].drafts;
  };
  const auto draft = make();
  std::vector<TokenId> tokens;
  for (TokenId id = 3; id < 11; ++id) tokens.push_back(id);
  for (int i = 0; i < 100; ++i) {
    const std::vector<TokenId> found = guessed(*draft, tokens);
    if (i % 25 == 24) {
      EXPECT_EQ(found, guessed(*make(), tokens)) << tokens.size() << " tokens";
    }
    tokens.push_back(i % 3 == 0 ? 7 : found[0]);  // some are wrong
  }
  const int64_t size = int64_t(tokens.size()) + 2;
  EXPECT_LE(draft->resident_bytes(), draft->layout().max_bytes(size, 12));
  EXPECT_LT(draft->layout().max_bytes(size, 12), draft->layout().all_bytes(size));
}

TEST(DraftModel, GivesUpItsPagesWithThoseOfTheEngine) {
  EngineSetup setup;
  setup.model = story(), setup.draft = story();
  setup.config.max_model_len = setup.config.max_num_batched_tokens = 256;
  setup.config.num_speculative_tokens = 3, setup.config.destroy_pages_on_pause = true;
  setup.config.silent_mode = true;
  setup.pages = 20, setup.draft_price = 0;
  Request request;
  request.prompt = std::vector<TokenId>{1, 403, 407, 261};
  request.sampling.temperature = 0, request.sampling.max_tokens = 30, request.sampling.ignore_eos = true;
  StepEngine engine(setup);
  std::vector<TokenId> found;
  const auto add = [&] {
    engine.add(request, [&](const RequestOutput& output) { found = output.outputs.at(0).token_ids; });
  };
  add();
  for (int i = 0; i < 4; ++i) engine.step();
  EXPECT_GT(engine.counts().draft_bytes, 0);
  engine.pause();
  engine.step();
  EXPECT_EQ(engine.counts().draft_bytes, 0);
  engine.resume();
  while (engine.step()) {
  }
  EXPECT_GT(engine.metrics().accepted_draft_tokens, 0);
  const std::vector<TokenId> paused = found;
  add();
  while (engine.step()) {
  }
  EXPECT_EQ(found, paused);
}

}  // namespace
}  // namespace easydel::esurge
