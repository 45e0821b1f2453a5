#include "easydel/generation/constrained.h"

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/generation/generator.h"
#include "support/data.h"

namespace easydel::generation {
namespace {

using namespace text::constrain;

std::shared_ptr<models::Model> small_model() {
  static const auto model = models::load_model(test::test_data("models/stories260K-hf"), [] {
    models::LoadOptions o;
    o.dtype = models::DTypeSetting::fp32;
    return o;
  }());
  return model;
}

class Constrained : public ::testing::Test {
 protected:
  std::vector<Result> run(const Language& language, GenerationConfig config) {
    config.eos_token_id = {2};
    const auto tokens = std::make_shared<const TokenBytes>(tokenizer_, std::vector<TokenId>{2});
    constraint_ = std::make_shared<const Constraint>(compile(language), tokens);
    Request request{tokenizer_->encode("Once upon a time"), std::move(config)};
    request.allowed = allowed_by(constraint_, request.prompt.size());
    return Generator(*small_model(), tokenizer_).run({request});
  }
  // Whether a text is accepted, or can become one that is.
  std::pair<bool, bool> judged(const std::string& text) const {
    Matcher matcher(constraint_);
    const bool begins = matcher.accept_bytes(text);
    return {begins && matcher.may_end(), begins};
  }
  std::shared_ptr<const text::Tokenizer> tokenizer_ = text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  std::shared_ptr<const Constraint> constraint_;
};

TEST_F(Constrained, DrawnTextsAreOfTheLanguageOrItsBeginnings) {
  const std::vector<Language> languages = {
      {Language::Kind::json_schema,
       R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer","minimum":0,"maximum":99}},"required":["name","age"],"additionalProperties":false})"},
      {Language::Kind::regex, "(Tom|Lily) (ran|sat)( and (ran|sat)){0,3}\\."},
      {Language::Kind::json_object}};
  size_t ended = 0;
  for (const Language& language : languages)
    for (uint64_t seed = 0; seed < 12; ++seed) {
      GenerationConfig config{.max_new_tokens = 120, .do_sample = true, .num_return_sequences = 2, .temperature = 1.5};
      config.seed = seed;
      for (const Result& result : run(language, config)) {
        const auto [accepted, begins] = judged(result.text);
        EXPECT_TRUE(result.reason == StopReason::end ? accepted : begins) << result.text;
        ended += result.reason == StopReason::end;
      }
    }
  EXPECT_GT(ended, 30u);  // of 72: not only beginnings were judged
}

TEST_F(Constrained, WhereOnlyTheEndIsLeftTheTextEnds) {
  const Result result = run({Language::Kind::choice, "", {"cat", "dog"}}, {.max_new_tokens = 50})[0];
  EXPECT_TRUE(result.text == "cat" || result.text == "dog") << result.text;
  EXPECT_EQ(result.reason, StopReason::end);
}

TEST_F(Constrained, BeamsFollowIt) {
  for (const Result& result : run({Language::Kind::choice, "", {"cat", "dog", "doghouse"}},
                                  {.max_new_tokens = 20, .num_return_sequences = 3, .num_beams = 3}))
    EXPECT_TRUE(result.text == "cat" || result.text == "dog" || result.text == "doghouse") << result.text;
}

TEST_F(Constrained, SaysWhereNoTokenCanGoOnAndWhichTokenMayNotBeThere) {
  const auto tokens = std::make_shared<const TokenBytes>(tokenizer_, std::vector<TokenId>{});  // nothing ends a text
  const auto constraint = std::make_shared<const Constraint>(compile({Language::Kind::choice, "", {"cat"}}), tokens);
  const AllowedTokens allowed = allowed_by(constraint, 1);
  std::vector<TokenId> ids = {1};
  std::string text;
  while (text != "cat") {
    const auto mask = allowed(ids);
    TokenId id = 0;
    while (!has_token(mask, id)) ++id;
    ids.push_back(id);
    text = tokenizer_->decode(std::span(ids).subspan(1));
    ASSERT_LE(text.size(), 3u);
  }
  EXPECT_EQ(
      test::refusal([&] { allowed(ids); }),
      str("constrained output: after ", ids.size() - 1,
          " tokens no token of this vocabulary can go on with 'cat'\n    allow a text that the tokenizer can write"));
  EXPECT_EQ(test::refusal([&] {
              allowed(std::vector<TokenId>{1, 2});
            }),
            "constrained output: the token 2 came, which is not allowed after ''\n    do not force tokens "
            "(forced_bos_token_id, forced_eos_token_id) together with a constraint");
}

}  // namespace
}  // namespace easydel::generation
