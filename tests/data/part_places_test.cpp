#include "easydel/data/part_places.h"

#include <gtest/gtest.h>

#include "easydel/data/learn_rules.h"
#include "easydel/text/unicode.h"
#include "support/data.h"

namespace easydel::data {
namespace {

class PartPlaces : public testing::Test {
 protected:
  // The places of the marked parts as "[before]part[after]" of the rendered text, one after the other.
  std::string places(const std::string& source, const std::string& messages, std::vector<size_t> asked = {1}) const {
    const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"), source);
    const text::ChatRenderer renderer(tokenizer);
    const Value all = parse_json(messages);
    const text::RenderedTurns turns = renderer.with_turns(without_part_marks(all));
    std::string out;
    for (const PartPlace& place :
         part_places(all, turns, asked, [&](const Value& changed) { return renderer.text(changed); }))
      out += str(place.message, ".", place.part, ": ", text::to_utf8(turns.text.substr(0, size_t(place.begin))), "[",
                 text::to_utf8(turns.text.substr(size_t(place.begin), size_t(place.end - place.begin))), "]",
                 text::to_utf8(turns.text.substr(size_t(place.end))), "\n");
    return out;
  }
  static std::string assistant(const std::string& parts, const std::string& more = "") {
    return R"([{"role": "user", "content": "no"}, {"role": "assistant", "content": [)" + parts + "]" + more + "}]";
  }
};

constexpr const char* plain = "{% for m in messages %}{{ m.role }}: {{ m.content }}</s>{% endfor %}";

TEST_F(PartPlaces, AreThoseOfTheirOwnTexts) {
  EXPECT_EQ(places(plain, assistant(R"({"text": "one "}, {"text": "two", "train": false}, {"text": " three"})")),
            "1.1: user: no</s>assistant: one [two] three</s>\n");
  EXPECT_EQ(places(plain, assistant(R"({"text": "a", "weight": 2}, {"text": "a"}, {"text": "a", "weight": 3})")),
            "1.0: user: no</s>assistant: [a]aa</s>\n1.2: user: no</s>assistant: aa[a]</s>\n");
}

// "sure" is also in the reasoning that the template writes before the content.
TEST_F(PartPlaces, AreNotWhereTheTextOccursEarlier) {
  const char* const source =
      "{% for m in messages %}{{ m.role }}: {% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% "
      "endif %}{{ m.content }}</s>{% endfor %}";
  EXPECT_EQ(places(source, assistant(R"({"text": "sure", "train": false}, {"text": " yes"})",
                                     R"(, "reasoning_content": "be sure yes")")),
            "1.0: user: no</s>assistant: <think>be sure yes</think>[sure] yes</s>\n");
}

TEST_F(PartPlaces, KeepBlanksThatTheTemplateCutsOff) {
  const char* const source = "{% for m in messages %}{{ m.role }}: {{ m.content | trim }}</s>{% endfor %}";
  EXPECT_EQ(places(source, assistant(R"({"text": "  ", "weight": 2}, {"text": " one ", "weight": 3},
                                        {"text": "two \n", "weight": 4}, {"text": " ", "weight": 5})")),
            "1.0: user: no</s>assistant: []one two</s>\n1.1: user: no</s>assistant: [one ]two</s>\n"
            "1.2: user: no</s>assistant: one [two]</s>\n1.3: user: no</s>assistant: one two[]</s>\n");
}

// A template that keeps them has them in their parts.
TEST_F(PartPlaces, HaveTheBlanksThatTheTemplateKeeps) {
  EXPECT_EQ(places(plain, assistant(R"({"text": " ", "weight": 2}, {"text": "one"}, {"text": "\n", "weight": 5})")),
            "1.0: user: no</s>assistant: [ ]one\n</s>\n1.2: user: no</s>assistant:  one[\n]</s>\n");
}

TEST_F(PartPlaces, HaveTheCharactersThatTheTextHas) {
  // Both parts have the text, so that it alone does not say where the first is.
  const std::string text = "\xF3\xB0\x80\x80 x";
  EXPECT_EQ(places(plain, assistant("{\"text\": \"" + text + "\", \"weight\": 2}, {\"text\": \"" + text + "\"}")),
            "1.0: user: no</s>assistant: [" + text + "]" + text + "</s>\n");
}

TEST_F(PartPlaces, OfAContentThatIsWrittenTwiceAreTwo) {
  const char* const source = "{% for m in messages %}{{ m.role }}: {{ m.content }} {{ m.content }}</s>{% endfor %}";
  EXPECT_EQ(places(source, assistant(R"({"text": "a", "weight": 2}, {"text": "b"})")),
            "1.0: user: no no</s>assistant: [a]b ab</s>\n1.0: user: no no</s>assistant: ab [a]b</s>\n");
}

// The template looks at how the content begins, so borders change what it writes.
TEST_F(PartPlaces, AreFoundByTheTextWhereTheTemplateReadsTheContent) {
  const char* const source =
      "{% for m in messages %}{{ m.role }}: {% if m.content.startswith('#') %}{{ m.content[1:] }}{% else %}-{{ "
      "m.content }}{% endif %}</s>{% endfor %}";
  EXPECT_EQ(places(source, assistant(R"({"text": "#"}, {"text": "one "}, {"text": "two", "weight": 2})")),
            "1.2: user: -no</s>assistant: one [two]</s>\n");
  EXPECT_EQ(test::refusal([&] {
              places(source,
                     assistant(R"({"text": "#", "weight": 2}, {"text": "one "}, {"text": "two", "weight": 2})"));
            }),
            "messages: the template does not write the part '#' as it is given\n    its weight cannot be applied: mark "
            "the whole message instead");
  EXPECT_EQ(
      test::refusal([&] {
        places(
            "{% for m in messages %}{{ m.role }}: {{ m.content | upper | lower | replace('\xF3\xB0\x80\x80', "
            "'') | replace('a', 'ab') }}</s>{% endfor %}",
            assistant(R"({"text": "a", "weight": 2}, {"text": "a"})"));
      }),
      "messages: the template changes the message with the part 'a', whose text it writes more than once\n    its "
      "weight cannot be applied: mark the whole message instead");
}

TEST_F(PartPlaces, OfMessagesThatAreNotAskedForAreNotLookedAt) {
  const std::string messages =
      R"([{"role": "user", "content": [{"text": "a", "weight": 2}]}, {"role": "assistant", "content": "b"}])";
  EXPECT_EQ(places(plain, messages), "");
  EXPECT_EQ(places(plain, messages, {0}), "0.0: user: [a]</s>assistant: b</s>\n");
}

}  // namespace
}  // namespace easydel::data
