#include "easydel/text/tokenizers/gguf_patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "easydel/text/tokenizers/tokenizer.h"
#include "support/data.h"
#include "text/gguf_bytes.h"

namespace easydel::text {
namespace {

// The names in src/llama-vocab.cpp of llama.cpp (that of llama-cpp-python 0.3.36).
constexpr std::string_view known_names =
    "kimi-k2 default minicpm5 llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano "
    "deepseek-llm deepseek-coder deepseek-v3 spark2_5 youtu falcon mpt starcoder gpt-2 phi-2 jina-es jina-de gigachat "
    "jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert jais-2 gemma4 granite-embed-multi-311m sarvam-moe jina-v1-en "
    "jina-v2-code roberta-bpe whitespace refact command-r qwen2 deepseek-r1-qwen kormo f2llmv2 qwen35 stablelm2 olmo "
    "dbrx smaug-bpe poro-chat chatglm-bpe glm4 glm5 viking jais tekken smollm codeshell bloom gpt3-finnish exaone "
    "exaone4 exaone-moe chameleon minerva-7b megrez gpt-4o llama4 kanana2 talkie granite-embed-multi-97m tiny_aya "
    "cohere2moe superbpe trillion granite-docling bailingmoe bailingmoe2 llada-moe seed-coder hunyuan hunyuan-dense "
    "hy_v4 joyai-llm ufakzeka grok-2 afmoe laguna minimax-m2 solar-open mellum2";

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

TEST(GgufPatterns, OfEveryNameThatLlamaCppKnowsLoad) {
  const test::TemporaryFolder folder;
  for (const std::string& name : words_of(known_names)) {
    GgufBytes gguf;
    gguf.text("tokenizer.ggml.model", name == "whitespace" ? name : "gpt2").text("tokenizer.ggml.pre", name);
    gguf.texts("tokenizer.ggml.tokens", {"a", "b", "ab"}).texts("tokenizer.ggml.merges", {"a b"});
    gguf.flag("tokenizer.ggml.add_bos_token", false);
    test::write_file(folder / "x.gguf", gguf.file());
    try {
      EXPECT_EQ(Tokenizer::load(folder / "x.gguf")->encode("ab"), std::vector<TokenId>{2}) << name;
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << ": " << error.what();
    }
  }
  const std::vector<std::string> ours = gguf_pattern_names(), theirs = words_of(known_names);
  EXPECT_EQ(std::set(ours.begin(), ours.end()), std::set(theirs.begin(), theirs.end()));
}

// FNV-1a of the patterns with characters outside ASCII, one after the other, as they are in llama.cpp.
TEST(GgufPatterns, HoldTheBytesOfLlamaCpp) {
  const std::pair<std::string, uint64_t> recorded[] = {
      {"deepseek-llm", 0x86e29159a2da6f7aU}, {"deepseek-coder", 0xa86ed9d2761b37e8U},
      {"deepseek-v3", 0x891f8a8879adea79U},  {"spark2_5", 0x891f8a8879adea79U},
      {"youtu", 0x9ae1855a2586a216U},        {"poro-chat", 0xe88203d044cec4dbU},
      {"viking", 0xe88203d044cec4dbU},       {"afmoe", 0x26b1ef8fb7a3bbb5U}};
  for (const auto& [name, hash] : recorded) {
    uint64_t ours = 0xcbf29ce484222325U;
    for (const std::string& pattern : gguf_pattern(name, "x.gguf").patterns) {
      const bool ascii = std::ranges::all_of(pattern, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
      for (const char c : ascii ? std::string() : pattern) ours = (ours ^ static_cast<uint8_t>(c)) * 0x100000001b3U;
    }
    EXPECT_EQ(ours, hash) << name;
  }
}

TEST(GgufPatterns, OfWordsDropTheBlanksBetweenThem) {
  const test::TemporaryFolder folder;
  GgufBytes gguf;
  gguf.text("tokenizer.ggml.model", "whitespace").text("tokenizer.ggml.pre", "whitespace");
  gguf.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<0x3F>"}).texts("tokenizer.ggml.merges", {"a b"});
  test::write_file(folder / "x.gguf", gguf.file());
  const auto tokenizer = Tokenizer::load(folder / "x.gguf");
  EXPECT_EQ(tokenizer->encode(" ab\n a?"), (std::vector<TokenId>{2, 0, 3}));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{2, 0, 3}), "aba?");
}

}  // namespace
}  // namespace easydel::text
