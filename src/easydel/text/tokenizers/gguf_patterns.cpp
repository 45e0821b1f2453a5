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
const std::string kana_and_han = "[一-龥぀-ゟ゠-ヿ]+";
const std::string contraction_tail = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)";

// clang-format breaks this text in a different place each time.
// clang-format off
const std::string deepseek_letters =
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-"
    "ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼ"
    "ℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-"
    "𐳲𑢠-𑣟𞤀-𞥃]+";
// clang-format on

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
      {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {{cl100k}}},
      {{"jais-2"}, {{replaced(cl100k, "\\s+(?!\\S)|\\s+", halving + "\\s{1}")}}},
      {{"deepseek-llm"},
       {{"[\r\n]", deepseek_letters, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$", "[一-龥ࠀ-一가-퟿]+",
         "\\p{N}+"}}},
      {{"deepseek-coder"}, {{"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+", "\\p{N}"}}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, {{"\\p{N}{1,3}", kana_and_han, deepseek3}}},
      {{"spark2_5"},
       {{"\\p{N}{1,3}", kana_and_han, replaced(deepseek3, "+[\\r\\n]*|\\s*[\\r\\n]+", "+|[\\r\\n]"), "\\p{N}"}}},
      {{"youtu"},
       {{"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
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
      {{"poro-chat", "bloom", "gpt3-finnish"}, {{" ?[^(\\s|.,!?…。，、।۔،)]+"}}},
      {{"viking"}, {{" ?[^(\\s|.,!?…。，、।۔،)]+", "\\p{N}"}}},
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
         "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+",
         deepseek3}}},
      {{"laguna"}, {{"[^\\n]+|[\\n]+", qwen2}}},
      {{"exaone-moe"},
       {{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}}},
      {{"minicpm5"}, {{"\\p{N}{1,3}", digits_kept}, true}},
      {{"gemma4", "granite-embed-multi-311m"}, {{"[^\\n]+|[\\n]+"}, false, true, true}},
      {{"sarvam-moe"}, {{"[^\\n]+|[\\n]+"}, false, false, true}},
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
    if (row.pattern.patterns == patterns && row.pattern.ignore_merges == ignore_merges && !row.pattern.escapes_blanks)
      return std::string(row.names.front());
  return "";
}

GgufPattern gguf_pattern(std::string_view pre, const std::string& name) {
  for (const Row& row : rows())
    if (std::find(row.names.begin(), row.names.end(), pre) != row.names.end()) return row.pattern;
  refuse(name, str("names the pre-tokenizer '", pre, "', which is not known"),
         "give the folder of the model with its tokenizer.json");
}

}  // namespace easydel::text
