// Lines of `probe constrain`.
#include "easydel/probe/constrain_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/unicode.h"
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

// How far tokens can write a text: the way of each token is followed by itself.
size_t written(const std::shared_ptr<const text::constrain::Constraint>& constraint, const std::string& text) {
  const text::constrain::TokenBytes& tokens = constraint->tokens();
  size_t most = 0;
  std::vector<std::pair<size_t, text::constrain::Matcher>> open;
  std::set<std::pair<size_t, int>> seen;
  open.emplace_back(0, text::constrain::Matcher(constraint));
  while (!open.empty()) {
    const auto [at, matcher] = open.back();
    open.pop_back();
    most = std::max(most, at);
    // What may follow depends on the text alone, and on the place that its last token leaves.
    if (!seen.emplace(at, int(matcher.place())).second) continue;
    for (text::TokenId id = 0; id < tokens.size(); ++id) {
      text::TextPlace place = matcher.place();
      const std::string_view bytes = tokens.bytes(id, place);
      if (bytes.empty() || !std::string_view(text).substr(at).starts_with(bytes)) continue;
      text::constrain::Matcher next = matcher;
      if (next.accept(id)) open.emplace_back(at + bytes.size(), next);
    }
  }
  return most;
}

TEST(ConstrainProbe, SaysWhichCharacterNoTokenCouldHaveWritten) {
  using text::constrain::Language;
  const std::shared_ptr<const text::Tokenizer> tokenizer =
      text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  const std::vector<std::pair<Language, std::vector<std::string>>> cases = {
      {{Language::Kind::choice, "", {"the end", "then", "d\xC3\xA9j\xC3\xA0 vu"}},
       {"the end", "then", "thex", "x", "the endx", "", "d\xC3\xA9j", "d\xC3\xA9x", "d\xC3\xA8"}},
      {{Language::Kind::json_schema, R"({"type": "array", "items": {"enum": ["one", 2, null]}})"},
       {R"(["one", 2])", R"(["one", 3])", R"(["once"])", "[2,2,,", "[null", "[[", "[2 ]"}},
      {{Language::Kind::regex, "(dog|cat)( and (dog|cat)){0,2}"},
       {"dog and cat", "dog and fish", "cat and cat and dog and", "cats"}}};
  size_t blocked = 0;
  for (const auto& [language, texts] : cases) {
    const ConstrainProbe probe(tokenizer, language);
    const auto constraint = std::make_shared<const text::constrain::Constraint>(
        text::constrain::compile(language),
        std::make_shared<const text::constrain::TokenBytes>(tokenizer, std::vector<text::TokenId>{2}));
    for (const std::string& text : texts) {
      Value line = Value::map();
      line.set("text", Value::text(text));
      const Value answer = parse_json(probe.answer(to_json(line)));
      size_t bytes = written(constraint, text);
      const std::optional<int64_t> at = answer.find("blocked_at")->as_int();
      ASSERT_EQ(at.has_value(), bytes < text.size()) << text;
      if (!at) continue;
      while (bytes > 0 && (uint8_t(text[bytes]) & 0xc0) == 0x80) --bytes;
      EXPECT_EQ(*at, text::count_characters(std::string_view(text).substr(0, bytes))) << text;
      ++blocked;
    }
  }
  EXPECT_GE(blocked, 9u);
}

}  // namespace
}  // namespace easydel::probe
