// Which parsers an answer needs, from its model's template and type.
#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "easydel/text/output/output_parser.h"
#include "support/data.h"

namespace easydel::text {
namespace {

TEST(OutputChoice, GoesByTemplateAndModelType) {
  const Value sources = parse_json(files::read_compressed(test::test_data("templates/templates.json.gz")));
  const auto detected = [&](const char* name) {
    const OutputFormat out = detect_output_format(sources.find(name)->scalar);
    return out.tools + "/" + out.reasoning;
  };
  EXPECT_EQ(detected("Qwen3-Coder.jinja"), "qwen3_coder/");
  EXPECT_EQ(detected("Qwen-Qwen3-0.6B.jinja"), "hermes/qwen3");
  EXPECT_EQ(detected("openai-gpt-oss-120b.jinja"), "openai/gptoss");
  EXPECT_EQ(detected("deepseek-ai-DeepSeek-V4.jinja"), "deepseek_v32/deepseek_v3");
  EXPECT_EQ(detected("GigaChat3.1-10B-A1.8B.jinja"), "gigachat3/");
  EXPECT_EQ(detected("vllm-functiongemma.jinja"), "functiongemma/");
  EXPECT_EQ(detected("meta-llama-Llama-3.2-3B-Instruct.jinja"), "llama3_json/");
  EXPECT_EQ(detected("vllm-llama4_pythonic.jinja"), "llama4_pythonic/");
  EXPECT_EQ(detected("vllm-llama4_json.jinja"), "llama4_json/");
  EXPECT_EQ(detected("vllm-deepseekr1.jinja"), "deepseek_v3/deepseek_r1");
  EXPECT_EQ(detected("google-gemma-2-2b-it.jinja"), "/");
  EXPECT_EQ(detect_output_format("", "kimi_k2").tools, "kimi_k2");
  EXPECT_EQ(detect_output_format("", "kimi_k2").reasoning, "kimi_k2");
  EXPECT_EQ(detect_output_format("", "").tools, "hermes");
}

TEST(OutputChoice, KnowsAFormatByWhatTheTemplateAsksForWhereItWritesNoCall) {
  const auto detected = [](const char* source) {
    const OutputFormat out = detect_output_format(source);
    return out.tools + "/" + out.reasoning;
  };
  EXPECT_EQ(detected("List of tools: <|tool_list_start|>["), "lfm2/");
  EXPECT_EQ(detected(R"(make calls in a single JSON array: [{"name": "tool_call_name", "arguments": {}}])"), "xlam/");
  EXPECT_EQ(detected("<beginning_of_sentence>ai\n<tool_calls>"), "minimax/");
  EXPECT_EQ(detected("<|bom|>assistant <tool_calls>"), "jamba/");
  EXPECT_EQ(detected("<tool_calls>[ <|extra_0|> <think>\n\n</think>"), "hunyuan_a13b/hunyuan_a13b");
  EXPECT_EQ(detected("<|start_of_role|> <|tool_call|> <think></think> <response></response>"), "granite/granite");
}

}  // namespace
}  // namespace easydel::text
