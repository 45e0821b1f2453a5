#include "easydel/text/render_chat.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::text {
namespace {

std::shared_ptr<const Tokenizer> tokenizer() { return Tokenizer::load(test::test_data("models/stories260K-hf")); }

const char* chat = R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"},
                       {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}])";

// The text of the tokens whose mask is 1.
std::string masked(const RenderedChat& rendered, const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < rendered.ids.size(); ++i)
    if (rendered.assistant_mask[i]) ids.push_back(rendered.ids[i]);
  return tokenizer.decode(ids, false, false);
}

TEST(ChatRenderer, MasksByTheMarkersOfTheTemplate) {
  ChatRenderer renderer(
      tokenizer(),
      "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }};"
      "{% endgeneration %}{% else %}{{ m.content }};{% endif %}{% endfor %}");
  EXPECT_TRUE(renderer.marks_generation());
  RenderedChat rendered = renderer.with_mask(parse_json(chat));
  EXPECT_EQ(rendered.text, "user:Hi;assistant:Yes;user:Why?;assistant:So.;");
  EXPECT_EQ(masked(rendered, renderer.tokenizer()), "Yes;So.;");
}

TEST(ChatRenderer, ProvesTheMaskOfATemplateWithoutMarkers) {
  ChatRenderer renderer(tokenizer(),
                        "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
                        "{% if add_generation_prompt %}assistant:{% endif %}");
  EXPECT_FALSE(renderer.marks_generation());
  RenderedChat rendered = renderer.with_mask(parse_json(chat));
  EXPECT_EQ(rendered.text, "<s>user:Hi;assistant:Yes;user:Why?;assistant:So.;");
  EXPECT_EQ(rendered.ids.front(), 1);
  EXPECT_EQ(masked(rendered, renderer.tokenizer()), "Yes;So.;");
  EXPECT_EQ(renderer.ids(parse_json(chat)), rendered.ids);
}

TEST(ChatRenderer, GivesNoMaskThatIsNotProven) {
  ChatRenderer renderer(tokenizer(),
                        "{% for m in messages %}{{ m.role }}:{{ m.content if loop.last else '...' }};{% endfor %}"
                        "{% if add_generation_prompt %}assistant:{% endif %}");
  EXPECT_EQ(
      test::refusal([&] { renderer.with_mask(parse_json(chat)); }),
      "chat template: the assistant's part of message 2 cannot be found, because the template writes the messages "
      "before it differently when more messages follow\n"
      "    mark it with {% generation %} in the template, or train on all tokens");
}

TEST(ChatRenderer, PassesWhatTransformersPasses) {
  ChatRenderer renderer(tokenizer(),
                        "{{ bos_token }}|{{ eos_token }}|{{ pad_token is defined }}|{{ tools is none }}|{{ x }}|"
                        "{{ messages[0].reasoning_content }}|{{ messages[0].thinking }}|{{ documents }}");
  ChatOptions options;
  options.extra = parse_json(R"({"x": 3})");
  EXPECT_EQ(renderer.text(parse_json(R"([{"role": "user", "reasoning": "because"}])"), options),
            "<s>|</s>|False|True|3|because|because|None");
}

TEST(ChatRenderer, RefusesWhatATextModelCannotUse) {
  ChatRenderer renderer(tokenizer(), "{% for m in messages %}{{ m.role }}{% endfor %}");
  const Value messages = parse_json(R"([{"role": "user", "content": [{"type": "text", "text": "What is this?"}]},
      {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a.png"}}]}])");
  const std::string told =
      "messages: message 2 has a part of type 'image_url', which the model cannot use\n    only the text part of "
      "models "
      "is built; leave the part out";
  EXPECT_EQ(test::refusal([&] { renderer.ids(messages); }), told);
  EXPECT_EQ(test::refusal([&] { renderer.with_mask(messages); }), told);
  EXPECT_EQ(renderer.text(messages), "useruser");
  // Also where the template itself fails at a list of parts.
  ChatRenderer texts_alone(tokenizer(), "{% for m in messages %}{{ m.role + m.content }}{% endfor %}");
  EXPECT_EQ(test::refusal([&] { texts_alone.ids(messages); }), told);
  EXPECT_EQ(test::refusal([&] { texts_alone.with_mask(messages); }), told);
  EXPECT_EQ(test::refusal([&] { texts_alone.with_turns(messages); }), told);
}

TEST(ChatRenderer, SaysWhatIsMissing) {
  auto path = test::test_data("models/stories260K-hf");
  EXPECT_EQ(test::refusal([&] { ChatRenderer renderer(tokenizer()); }),
            path.string() +
                ": has no chat template\n    give one: model.chat_template in a run, --template on the command line, "
                "or chat_template.jinja in the folder");
  ChatRenderer renderer(tokenizer(), "x");
  EXPECT_EQ(test::refusal([&] { renderer.text(parse_json("{}")); }),
            "messages: is not a list\n    [{\"role\": \"user\", \"content\": \"...\"}]");
  EXPECT_EQ(test::refusal([&] { renderer.text(parse_json("[1]")); }),
            "messages: message 1 is not a map\n    {\"role\": ..., \"content\": ...}");
}

}  // namespace
}  // namespace easydel::text
