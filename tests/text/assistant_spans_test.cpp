#include "easydel/text/assistant_spans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "easydel/base/files.h"
#include "easydel/text/render_chat.h"
#include "support/data.h"
#include "text/fixed_day.h"

namespace easydel::text {
namespace {

Value context_of(const Value& messages, bool add_generation_prompt) {
  Value out = Value::map();
  out.set("messages", messages);
  out.set("tools", Value());
  out.set("documents", Value());
  out.set("add_generation_prompt", Value::boolean(add_generation_prompt));
  for (const char* name : {"bos", "eos", "pad", "unk"}) {
    std::string token = "<" + std::string(name) + ">";
    std::ranges::transform(token, token.begin(), [](unsigned char c) { return char(std::toupper(c)); });
    out.set(std::string(name) + "_token", Value::text(token));
  }
  return out;
}

constexpr int64_t day_of_recording = 1795348800;  // 2026-11-22

class Traced {
 public:
  explicit Traced(const std::string& source) : template_(source) {
    header = assistant_header(
        [this](const Value& messages, bool prompt) { return template_.render(context_of(messages, prompt), true); },
        detect_output_format(source));
  }
  Rendering render(const Value& messages) const { return template_.render(context_of(messages, false), true); }
  std::string header;

 private:
  ChatTemplate template_;
};

std::string shown(const Spans& spans, const std::string& text) {
  std::string out;
  for (const auto& [begin, end] : spans) out += str("[", begin, ",", end, ")");
  return out + " of " + text;
}

// Every chat template for which TRL has a training template, and what that one marks as generated.
TEST(AssistantSpans, AreThoseThatTrlsTrainingTemplatesMark) {
  const FixedDay day(day_of_recording);
  const Value recorded =
      parse_json(files::read_compressed(test::test_data("templates/trl_spans.json.gz")), "trl_spans.json");
  std::map<std::string, Traced> templates;
  for (const auto& [name, source] : recorded.find("templates")->entries) templates.emplace(name, source.scalar);
  int64_t checked = 0;
  for (const Value& one : recorded.find("cases")->items) {
    const std::string name = one.find("template")->scalar, conversation = one.find("conversation")->scalar;
    const Value& messages = *recorded.find("conversations")->find(conversation);
    const Traced& traced = templates.at(name);
    const Rendering rendered = traced.render(messages);
    ASSERT_EQ(rendered.text, one.find("text")->scalar) << name << " " << conversation;
    Spans expected;
    for (const Value& span : one.find("spans")->items)
      expected.emplace_back(*span.items[0].as_int(), *span.items[1].as_int());
    const auto found =
        assistant_spans(messages, rendered, true, traced.header, name == "llava_next" ? "</s>" : "<EOS>");
    EXPECT_EQ(shown(found.value_or(Spans()), rendered.text), shown(expected, rendered.text))
        << name << " " << conversation << ", header '" << traced.header << "'";
    ++checked;
  }
  EXPECT_GT(checked, 370);
}

// TRL's own templates, given as model.chat_template: transformers' ids and masks.
TEST(AssistantSpans, OfTrlsTrainingTemplatesAreTransformersMasks) {
  const FixedDay day(day_of_recording);
  const Value recorded =
      parse_json(files::read_compressed(test::test_data("templates/trl_spans.json.gz")), "trl_spans.json");
  const auto tokenizer = Tokenizer::load(test::test_data("models/stories260K-chat"));
  ASSERT_EQ(recorded.find("masks")->items.size(), 8u);
  for (const Value& one : recorded.find("masks")->items) {
    const RenderedChat made = ChatRenderer(tokenizer, one.find("template")->scalar)
                                  .with_mask(*recorded.find("conversations")->find(one.find("conversation")->scalar));
    std::vector<TokenId> ids;
    std::vector<uint8_t> mask;
    for (const Value& id : one.find("ids")->items) ids.push_back(TokenId(*id.as_int()));
    for (const Value& bit : one.find("mask")->items) mask.push_back(uint8_t(*bit.as_int()));
    EXPECT_EQ(made.ids, ids);
    EXPECT_EQ(made.assistant_mask, mask) << one.find("template")->scalar.substr(0, 100);
  }
}

}  // namespace
}  // namespace easydel::text
