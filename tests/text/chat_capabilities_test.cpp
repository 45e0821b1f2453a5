#include "easydel/text/chat_capabilities.h"

#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "support/data.h"

namespace easydel::text {
namespace {

std::string told(const ChatTemplate& source) {
  const ChatCapabilities can = capabilities_of(source);
  std::string out;
  const auto add = [&](bool holds, const char* word) {
    if (holds) out += (out.empty() ? "" : " ") + std::string(word);
  };
  add(can.conversation, "conversation");
  add(can.system_role, "system");
  add(can.tools, "tools");
  add(can.tool_calls, "calls");
  add(can.tool_results, "results");
  add(can.content_parts, "parts");
  add(can.content_strings, "strings");
  add(can.thinking, "thinking");
  add(can.keeps_reasoning, "reasoning");
  add(can.generation_prompt, "prompt");
  add(can.generation_markers, "markers");
  return out;
}

TEST(ChatCapabilities, AreFoundInRealTemplates) {
  const Value sources = parse_json(files::read_compressed(test::test_data("templates/templates.json.gz")));
  const auto of = [&](const char* name) { return told(ChatTemplate(sources.find(name)->scalar, name)); };
  EXPECT_EQ(of("Qwen3.5-4B.jinja"), "conversation system tools calls results parts strings thinking reasoning prompt");
  EXPECT_EQ(of("Qwen-Qwen2.5-7B-Instruct.jinja"), "conversation system tools calls results strings prompt");
  EXPECT_EQ(of("trl-qwen3_training.jinja"),
            "conversation system tools calls results strings thinking reasoning prompt markers");
  EXPECT_EQ(of("google-gemma-2-2b-it.jinja"), "conversation strings prompt");
  EXPECT_EQ(of("mistral-common-v7.jinja"), "conversation system tools calls results parts strings");
  EXPECT_EQ(of("trl-gemma3_training.jinja"), "conversation system parts strings prompt markers");
  EXPECT_EQ(of("meta-llama-Llama-3.1-8B-Instruct.jinja"), "conversation system tools calls results strings prompt");
  EXPECT_EQ(of("openai-gpt-oss-120b.jinja"), "conversation system tools calls results strings reasoning prompt");
  for (const auto& [name, source] : sources.entries) {
    SCOPED_TRACE(name);
    const ChatTemplate parsed(source.scalar, name);
    const ChatCapabilities can = capabilities_of(parsed);
    EXPECT_EQ(can.conversation, can.content_parts || can.content_strings);
    EXPECT_EQ(can.generation_markers, parsed.marks_generation());
  }
}

TEST(ChatCapabilities, AreNoneWhereATemplateRefusesEverything) {
  EXPECT_EQ(told(ChatTemplate("{{ raise_exception('no') }}")), "");
  EXPECT_EQ(told(ChatTemplate("{{ messages }}")), "conversation system calls results strings reasoning");
}

}  // namespace
}  // namespace easydel::text
