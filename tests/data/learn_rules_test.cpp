#include "easydel/data/learn_rules.h"

#include <gtest/gtest.h>

#include "easydel/data/encode.h"
#include "support/data.h"

namespace easydel::data {
namespace {

const char* const chatml =
    "{% for m in messages %}{{ '<s>' + m.role + '\\n' + m.content + '</s>' + '\\n' }}{% endfor %}{% if "
    "add_generation_prompt %}{{ '<s>assistant\\n' }}{% endif %}";
const char* const talk =
    R"({"messages": [{"role": "system", "content": "one"}, {"role": "user", "content": "two"},
        {"role": "assistant", "content": "three"}, {"role": "user", "content": "four"},
        {"role": "assistant", "content": "five"}]})";

class Learned : public testing::Test {
 protected:
  // The learned tokens' text, with | between tokens that are apart.
  std::string learned(const std::string& json, std::optional<LearnRules> rules, bool assistant = false) const {
    TypedRow row = typed({parse_json(json), "rows.jsonl:7"}, {});
    if (rules) row.learn = std::make_shared<const LearnRules>(*rules);
    EncoderOptions options;
    options.assistant_mask = assistant;
    const Encoder encoder(tokenizer_, options);
    const Encoded made = encoder.encode(row);
    std::string out;
    for (size_t i = 0; i < made.ids.size(); ++i) {
      if (!made.assistant.empty() && !made.assistant[i]) {
        if (!out.empty() && out.back() != '|') out += '|';
        continue;
      }
      out += text::decode_continuation(*tokenizer_, std::span(made.ids).first(i), std::span(&made.ids[i], 1), false);
      if (!made.weights.empty() && made.weights[i] != 1) out += str("*", double(made.weights[i]));
    }
    if (!out.empty() && out.back() == '|') out.pop_back();
    return out;
  }
  const std::shared_ptr<const text::Tokenizer> tokenizer_ =
      text::Tokenizer::load(test::test_data("models/stories260K-chat"), chatml);
};

TEST_F(Learned, RolesThatAreNamed) {
  LearnRules rules;
  EXPECT_EQ(learned(talk, rules), "three</s> \n|five</s> \n");
  rules.roles = {"user"};
  EXPECT_EQ(learned(talk, rules), "two</s>|four</s>");
  rules.roles = {"system", "assistant"};
  EXPECT_EQ(learned(talk, rules), "one</s>|three</s> \n|five</s> \n");
}

TEST_F(Learned, TheLastTurnAlone) {
  LearnRules rules;
  rules.turns = TrainOnTurns::last;
  EXPECT_EQ(learned(talk, rules), "five</s> \n");
}

TEST_F(Learned, EndTokensByRule) {
  LearnRules rules;
  rules.eos = TrainOnEos::none;
  EXPECT_EQ(learned(talk, rules), "three|five");
  rules.eos = TrainOnEos::last;
  EXPECT_EQ(learned(talk, rules), "three|five</s> \n");
  rules.eos = TrainOnEos::all;
  EXPECT_EQ(learned(talk, rules), "</s>|</s>|three</s> \n|</s>|five</s> \n");
}

TEST_F(Learned, MarksOfMessages) {
  const std::string marked =
      R"({"messages": [{"role": "user", "content": "two"}, {"role": "assistant", "content": "three", "weight": 0},
          {"role": "user", "content": "four"}, {"role": "assistant", "content": "five", "weight": 0.5}]})";
  EXPECT_EQ(learned(marked, std::nullopt, true).find("three"), std::string::npos);
  const std::string weighed = learned(marked, std::nullopt, true);
  EXPECT_NE(weighed.find("</s>*0.5"), std::string::npos) << weighed;
  EXPECT_EQ(weighed.find("four"), std::string::npos) << weighed;
  const std::string train =
      test::replaced(test::replaced(marked, "\"weight\": 0.5", "\"train\": true"), "\"weight\": 0", "\"train\": false");
  EXPECT_EQ(learned(train, std::nullopt, true), "five</s> \n");
  EXPECT_EQ(learned(train, std::nullopt, false), "<s> user\ntwo</s> \n|<s> user\nfour</s> \n<s> assistant\nfive</s> \n")
      << "without a mask only messages that say no are left out, with their headers";
}

TEST_F(Learned, MarksOfParts) {
  const char* const parts =
      R"({"messages": [{"role": "user", "content": "two"}, {"role": "assistant", "content":
          [{"type": "text", "text": "wrong ", "train": false}, {"type": "text", "text": "right"}]}]})";
  EXPECT_EQ(learned(parts, std::nullopt, true), "right</s> \n");
}

TEST_F(Learned, APartIsFoundWhereItIsNotWhereItsTextOccursFirst) {
  const char* const parts =
      R"({"messages": [{"role": "user", "content": "two"}, {"role": "assistant", "content":
          [{"type": "text", "text": "right "}, {"type": "text", "text": "right", "train": false}]}]})";
  EXPECT_EQ(learned(parts, std::nullopt, true), "right |</s> \n");
  // All of the conversation is learned, and the header of the turn has the part's text, too.
  const char* const header =
      R"({"messages": [{"role": "user", "content": "two"}, {"role": "assistant", "content":
          [{"type": "text", "text": "assistant", "train": false}, {"type": "text", "text": " five"}]}]})";
  EXPECT_EQ(learned(header, std::nullopt, false), "<s> user\ntwo</s> \n<s> assistant\n| five</s> \n");
}

TEST_F(Learned, TurnsOfWhichNothingIsLearnedAreNoted) {
  const auto masks = [&](const std::string& json, std::optional<LearnRules> rules) {
    TypedRow row = typed({parse_json(json), "rows.jsonl:7"}, {});
    if (rules) row.learn = std::make_shared<const LearnRules>(*rules);
    EncoderOptions options;
    options.assistant_mask = !rules;
    return Encoder(tokenizer_, options).encode(row).masks_answer;
  };
  const std::string silent = test::replaced(talk, "three", "");
  LearnRules bare;
  bare.eos = TrainOnEos::none;
  EXPECT_FALSE(masks(talk, std::nullopt) || masks(talk, bare));
  EXPECT_FALSE(masks(silent, std::nullopt) || masks(silent, LearnRules())) << "its end token is learned";
  EXPECT_TRUE(masks(silent, bare));
  const std::string asked = test::replaced(talk, "\"content\": \"three\"", "\"content\": \"three\", \"weight\": 0");
  EXPECT_FALSE(masks(asked, bare)) << "the user's own words";
  // As a completion: what the prompt says is not learned anyway.
  const std::string answer =
      R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""},
          {"role": "user", "content": "b"}], "completion": [{"role": "assistant", "content": "c"}]})";
  EXPECT_FALSE(masks(answer, bare));
  // Without rules, where the template marks the assistant's text alone.
  const auto marked = text::Tokenizer::load(
      test::test_data("models/stories260K-chat"),
      "{% for m in messages %}{{ m.role }}: {% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% "
      "endgeneration %}{% else %}{{ m.content }}{% endif %}</s>{% endfor %}");
  const auto masks_span = [&](const std::string& json) {
    EncoderOptions options;
    options.assistant_mask = true;
    return Encoder(marked, options).encode(typed({parse_json(json), "rows.jsonl:7"}, {})).masks_answer;
  };
  EXPECT_FALSE(masks_span(talk));
  EXPECT_TRUE(masks_span(silent));
}

TEST(Marks, AreReadFromMessagesAndParts) {
  const Value message = parse_json(
      R"({"content": [{"text": "a", "train": false}, {"type": "image"}, {"text": ["b"], "weight": 2}, "c", {"text": null}]})");
  const Value* const parts = parts_of(message);
  ASSERT_TRUE(parts);
  std::string texts;
  for (const Value& part : parts->items) texts += text_of_part(part) ? *text_of_part(part) : "-";
  EXPECT_EQ(texts, "a----");
  EXPECT_EQ(mark_of(parts->items[0]), 0.0);
  EXPECT_EQ(mark_of(parts->items[1]), std::nullopt);
  EXPECT_EQ(mark_of(parts->items[2]), 2.0);
  EXPECT_EQ(mark_of(parts->items[3]), std::nullopt);
  EXPECT_EQ(mark_of(parse_json(R"({"train": true, "weight": 0.5})")), 0.5);
  EXPECT_EQ(mark_of(parse_json(R"({"train": false, "loss_weight": 3})")), 0.0);
  EXPECT_EQ(parts_of(parse_json(R"({"content": "a"})")), nullptr);
  EXPECT_EQ(parts_of(parse_json(R"("a")")), nullptr);
}

TEST_F(Learned, MarksThatAreNoneAreRefused) {
  const auto told = [&](const std::string& mark) {
    return test::refusal(
        [&] { learned(R"({"messages": [{"role": "assistant", "content": "a", )" + mark + "}]}", std::nullopt); });
  };
  EXPECT_EQ(told(R"("weight": -1)"),
            "rows.jsonl:7: messages: 'weight' is -1, which is not a weight\n    give a number from 0; 0 leaves the "
            "message out of the loss");
  EXPECT_EQ(told(R"("train": "yes")"),
            "rows.jsonl:7: messages: 'train' is \"yes\", which is neither true nor false\n    give true or false");
}

}  // namespace
}  // namespace easydel::data
