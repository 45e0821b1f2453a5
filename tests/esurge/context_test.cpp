// What is cut off and capped where a prompt and its answer do not fit.
#include "easydel/esurge/context.h"

#include <gtest/gtest.h>

#include "esurge/fake_engine.h"
#include "support/data.h"

namespace easydel::test {
namespace {

FittedPrompt fit(int64_t size, std::optional<int64_t> max_tokens, const EsurgeConfig& config = {}) {
  return fit_context(text_of(size), max_tokens, 100, config);
}

TEST(Context, LeavesWhatFitsAsItIs) {
  const FittedPrompt fitted = fit(60, 40);
  EXPECT_EQ(fitted.tokens, text_of(60));
  EXPECT_EQ(fitted.max_tokens, 40);
  EXPECT_EQ(fitted.truncated_tokens + fitted.capped_tokens, 0);
  EXPECT_EQ(fit(60, std::nullopt).max_tokens, 40);
  EXPECT_EQ(fit(60, std::nullopt).capped_tokens, 0);
}

TEST(Context, CapsTheAnswerBeforeItTruncatesThePrompt) {
  const FittedPrompt fitted = fit(90, 40);
  EXPECT_EQ(fitted.tokens.size(), 90u);
  EXPECT_EQ(fitted.max_tokens, 10);
  EXPECT_EQ(fitted.capped_tokens, 30);
}

TEST(Context, TruncatesFirstIfTheAnswerMatters) {
  EsurgeConfig config;
  config.prefer_preserve_prompt = false;
  const FittedPrompt fitted = fit(90, 40, config);
  EXPECT_EQ(fitted.tokens, text_of(60, 31));
  EXPECT_EQ(fitted.truncated_tokens, 30);
  EXPECT_EQ(fitted.max_tokens, 40);
  EXPECT_EQ(fit(90, 400, config).max_tokens, 10) << "no prompt would be left";
}

TEST(Context, TruncatesAtTheEndThatIsAskedFor) {
  EsurgeConfig config;
  config.reserve_tokens = 95;
  EXPECT_EQ(fit(9, 1, config).tokens, (std::vector<int32_t>{5, 6, 7, 8, 9}));
  config.truncate_mode = TruncateMode::right;
  EXPECT_EQ(fit(9, 1, config).tokens, (std::vector<int32_t>{1, 2, 3, 4, 5}));
  config.truncate_mode = TruncateMode::middle;
  EXPECT_EQ(fit(9, 1, config).tokens, (std::vector<int32_t>{1, 2, 3, 8, 9}));
}

TEST(Context, LeavesRoomForAnAnswerToATruncatedPrompt) {
  EXPECT_EQ(fit(500, 10).max_tokens, 10);
  EXPECT_EQ(fit(500, 60).max_tokens, 25);
  EXPECT_EQ(fit(500, 60).capped_tokens, 35);
  EXPECT_EQ(fit(500, std::nullopt).tokens.size(), 75u);
  EsurgeConfig config;
  config.reserve_tokens = 40;
  EXPECT_EQ(fit(500, std::nullopt, config).max_tokens, 40);
  EXPECT_EQ(fit(70, 10, config).tokens.size(), 60u);
}

TEST(Context, RefusesWhatItMayNotShorten) {
  EsurgeConfig strict;
  strict.strict_context = true;
  EXPECT_EQ(refusal([&] { fit(90, 40, strict); }),
            "prompt: a prompt of 90 tokens and an answer of up to 40 do not fit into a context of 100\n    shorten the "
            "prompt, lower max_tokens, or set esurge.strict_context: false to truncate and to cap");
  EsurgeConfig config;
  config.auto_truncate_prompt = false;
  config.reserve_tokens = 10;
  EXPECT_EQ(
      refusal([&] { fit(95, std::nullopt, config); }),
      "prompt: a prompt of 95 tokens and an answer do not fit into a context of 100, of which 10 are reserved for "
      "the answer\n    shorten the prompt, lower max_tokens, or allow esurge.auto_truncate_prompt and "
      "esurge.auto_cap_new_tokens");
  const std::string allow =
      "\n    shorten the prompt, lower max_tokens, or allow esurge.auto_truncate_prompt and esurge.auto_cap_new_tokens";
  config.auto_cap_new_tokens = false;
  EXPECT_EQ(refusal([&] { fit(85, 40, config); }),
            "prompt: a prompt of 85 tokens and an answer of up to 40 do not fit into a context of 100, of which 10 are "
            "reserved for the answer" +
                allow);
  config.auto_truncate_prompt = true;
  EXPECT_EQ(fit(85, 40, config).tokens.size(), 60u);
  EXPECT_EQ(refusal([&] { fit(85, 400, config); }),
            "prompt: a prompt of 85 tokens and an answer of up to 400 do not fit into a context of 100, of which 10 "
            "are reserved for the answer" +
                allow);
  config.reserve_tokens = 100;
  EXPECT_EQ(refusal([&] { fit(5, 5, config); }),
            "esurge.reserve_tokens: 100 tokens of a context of 100 leave none for a prompt\n"
            "    lower esurge.reserve_tokens or raise esurge.max_model_len");
}

TEST(Context, HasTheModelsLengthOr8192) {
  EsurgeConfig config;
  EXPECT_EQ(context_length(config, 2048), 2048);
  EXPECT_EQ(context_length(config, 131072), 8192);
  EXPECT_EQ(context_length(config, std::nullopt), 8192);
  config.max_model_len = 4096;
  EXPECT_EQ(context_length(config, 131072), 4096);
  EXPECT_EQ(refusal([&] { context_length(config, 2048); }),
            "esurge.max_model_len: 4096 is more than the 2048 positions of the model\n    lower it, or give null");
  config.max_num_batched_tokens = 5000;
  EXPECT_EQ(refusal([&] { context_length(config, 131072); }),
            "esurge.max_num_batched_tokens: max_num_batched_tokens (5000) cannot exceed max_model_len (4096)");
}

}  // namespace
}  // namespace easydel::test
