// Lines of `probe constrain`.
#include "easydel/probe/constrain_lines.h"

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel::probe {
namespace {

TEST(ConstrainProbe, GivesTheTokensThatMayComeAfterAText) {
  const std::shared_ptr<const text::Tokenizer> tokenizer =
      text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  text::constrain::Language language;
  language.kind = text::constrain::Language::Kind::choice;
  language.choices = {"the end", "then"};
  const ConstrainProbe probe(tokenizer, language);
  const auto after = [&](const std::string& text) {
    const Value answer = parse_json(probe.answer("{\"text\": \"" + text + "\", \"mask\": true}"));
    const Value* const mask = answer.find("mask");
    return mask ? mask->scalar : "";
  };
  const text::constrain::TokenBytes bytes(tokenizer, {});
  const std::string mask = after("the");
  ASSERT_EQ(mask.size(), 2 * size_t((bytes.size() + 7) / 8));
  int64_t allowed = 0;
  for (text::TokenId id = 0; id < bytes.size(); ++id) {
    text::TextPlace place = text::TextPlace::inside;
    const std::string_view token = bytes.bytes(id, place);
    const bool expected = !token.empty() && (std::string_view(" end").starts_with(token) || token == "n");
    const int digits = std::stoi(mask.substr(2 * size_t(id / 8), 2), nullptr, 16);
    EXPECT_EQ(bool(digits >> id % 8 & 1), expected) << id << " '" << token << "'";
    allowed += expected;
  }
  EXPECT_GE(allowed, 3);
  EXPECT_EQ(after("this"), "");
}

}  // namespace
}  // namespace easydel::probe
