// The names are those of ggml-org/llama.cpp src/llama-vocab.cpp; the patterns those of the models' own tokenizer.json.
#include "easydel/text/tokenizers/gguf_patterns.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/formats.h"

namespace easydel::text {
namespace {

const std::string gpt2(gpt2_pattern), cl100k(cl100k_pattern), qwen2(qwen2_pattern), o200k(o200k_pattern),
    tekken(tekken_pattern);

// Words of letters or marks with the ASCII punctuation before them, as in DeepSeek V3.
const std::string deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kana_and_han = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";

// Spelled as escapes, because normalization of this file would change six of its characters (U+1F7D, U+1FBE, U+1FD3,
// U+1FDB, U+2126, U+212A).
// clang-format off
const std::string deepseek_letters =
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
    "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
    "\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+";
// clang-format on

using Pieces = GgufPattern::Pieces;

struct Row {
  std::vector<std::string_view> names;
  GgufPattern pattern;
};

std::vector<Row> make_rows() {
  auto replaced = [](std::string text, std::string_view from, std::string_view to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  };
  std::string no_han = replaced(o200k, "\\p{M}]", "\\p{M}&&[^\\p{Han}]]");
  std::string digits_kept = replaced(cl100k, "\\p{N}{1,3}", "\\p{N}+");
  std::string halving;
  for (const char* count : {"512", "256", "128", "64", "32", "16", "8", "4", "1,2"})
    halving += str("\\s{", count, "}(?!\\S)|");
  return {
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       {{cl100k}, true, true}},
      {{"dbrx", "smaug-bpe", "glm4", "glm5", "chatglm-bpe"}, {{cl100k}}},
      {{"jais-2"}, {{replaced(cl100k, "\\s+(?!\\S)|\\s+", halving + "\\s{1}")}}},
      {{"deepseek-llm"},
       {{"[\r\n]", deepseek_letters, "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", "\\s+$",
         "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", "\\p{N}+"}}},
      {{"deepseek-coder"},
       {{"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", "\\p{N}"}}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, {{"\\p{N}{1,3}", kana_and_han, deepseek3}}},
      {{"spark2_5"},
       {{"\\p{N}{1,3}", kana_and_han, replaced(deepseek3, "+[\\r\\n]*|\\s*[\\r\\n]+", "+|[\\r\\n]"), "\\p{N}"}}},
      {{"youtu"},
       {{"[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-"
         "\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
         replaced(o200k, "\\p{N}{1,3}", "\\p{N}")},
        true}},
      {{"falcon"}, {{"[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2, "[0-9][0-9][0-9]"}}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
       {{"\\p{N}", gpt2}}},
      {{"gpt-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "phi-2", "jina-es", "jina-de", "gigachat",
        "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum", "modern-bert", "exaone4", "jina-v1-en", "jina-v2-code",
        "roberta-bpe"},
       {{gpt2}}},
      {{"qwen2", "stablelm2", "hunyuan", "solar-open", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "grok-2"},
       {{qwen2}}},
      {{"qwen35"},
       {{replaced(replaced(qwen2, "?\\p{L}+", "?[\\p{L}\\p{M}]+"), "[^\\s\\p{L}\\p{N}]", "[^\\s\\p{L}\\p{M}\\p{N}]")}}},
      {{"poro-chat", "bloom", "gpt3-finnish"}, {{" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"}}},
      {{"viking"}, {{" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+", "\\p{N}"}}},
      {{"tekken"}, {{tekken}, true, true}},
      {{"chameleon"},
       {{"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", "\\p{N}",
         "[\\p{P}!-/:-@\\[-`{-~]", gpt2},
        false,
        true}},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {{o200k}}},
      {{"granite-embed-multi-97m"}, {{o200k}, true}},
      {{"tiny_aya", "cohere2moe"}, {{"\\d{1,3}(?=(?:\\d{3})*\\b)", o200k}}},
      {{"kimi-k2"}, {{"[\\p{Han}]+|" + replaced(no_han, "[\\r\\n/]*", "[\\r\\n]*")}}},
      {{"superbpe"}, {{"\\p{N}+", "(?=(\\d{3})+(?!\\d))"}}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"},
       {{R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}}},
      {{"seed-coder"}, {{replaced(qwen2, " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", " ?[^\\s\\p{L}\\p{N}\\r\\n]+")}}},
      {{"ufakzeka"}, {{replaced(qwen2, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|", "")}}},
      {{"afmoe"},
       {{"\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))",
         "[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-"
         "\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
         deepseek3}}},
      {{"laguna"}, {{"[^\\n]+|[\\n]+", qwen2}}},
      {{"exaone-moe"},
       {{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}}},
      {{"minicpm5"}, {{"\\p{N}{1,3}", digits_kept}, true}},
      {{"gemma4", "granite-embed-multi-311m"}, {{"[^\\n]+|[\\n]+"}, false, true, Pieces::escaped_blanks}},
      {{"sarvam-moe"}, {{"[^\\n]+|[\\n]+"}, false, false, Pieces::escaped_blanks}},
      {{"whitespace"}, {{"\\S+"}, false, false, Pieces::words}},
      {{"", "default"}, {{"[\\p{P}\\$\\+<=>\\^~\\|]+", gpt2, "\\p{N}+", "[0-9][0-9][0-9]"}}},
  };
}

}  // namespace

namespace {

const std::vector<Row>& rows() {
  static const std::vector<Row> all = make_rows();
  return all;
}

}  // namespace

std::string gguf_pattern_name(const std::vector<std::string>& patterns, bool ignore_merges) {
  for (const Row& row : rows())
    if (row.pattern.patterns == patterns && row.pattern.ignore_merges == ignore_merges &&
        row.pattern.pieces == Pieces::mapped_bytes)
      return std::string(row.names.front());
  return "";
}

std::vector<std::string> gguf_pattern_names() {
  std::vector<std::string> out;
  for (const Row& row : rows())
    for (const std::string_view name : row.names)
      if (!name.empty()) out.emplace_back(name);
  return out;
}

GgufPattern gguf_pattern(std::string_view pre, const std::string& name) {
  for (const Row& row : rows())
    if (std::find(row.names.begin(), row.names.end(), pre) != row.names.end()) return row.pattern;
  refuse(name, str("names the pre-tokenizer '", pre, "', which is not known"),
         "give the folder of the model with its tokenizer.json");
}

}  // namespace easydel::text
