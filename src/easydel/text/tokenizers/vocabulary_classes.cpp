// The table of classes, by name.
#include "easydel/text/tokenizers/vocabulary_classes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "easydel/base/error.h"

namespace easydel::text {
namespace {

using Names = NamedTokens::Names;
using Trim = VocabularyClass::Trim;

constexpr Names end_of_text = {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "", "", "", ""};
constexpr Names qwen = {"", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>", "", ""};
constexpr Names roberta = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Names bert = {"", "", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};

constexpr std::string_view nfc = R"({"type": "NFC"})";
constexpr std::string_view digits = R"({"type": "Digits", "individual_digits": true})";
constexpr std::string_view words_of_bert = R"({"type": "BertPreTokenizer"})";
constexpr std::string_view clip_normalizer = R"({"type": "Sequence", "normalizers": [{"type": "NFC"},
  {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}, {"type": "Lowercase"}]})";
constexpr std::string_view clip_split =
    R"({"type": "Split", "behavior": "Removed", "invert": true, "pattern": {"Regex": "<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"}})";
constexpr std::string_view openai_normalizer =
    R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true})";
constexpr std::string_view herbert_normalizer =
    R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": false, "lowercase": false})";

std::string isolated(std::string_view pattern) {
  Value split = parse_json(R"({"type": "Split", "pattern": {}, "behavior": "Isolated", "invert": false})");
  split.find("pattern")->set("Regex", Value::text(std::string(pattern)));
  return to_json(split);
}

const std::string qwen2_split = isolated(qwen2_pattern), qwen3_5_split = isolated(qwen3_5_pattern);
// Nougat gives its patterns as plain strings, so that only the line break ever matches.
const std::string nougat_splits =
    str(digits, "\n", R"({"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": false})");

// Must follow the strings above, which it uses.
const std::vector<VocabularyClass> vocabulary_classes = {
    {.names = "GPT2 CodeGen", .named = end_of_text},
    {.names = "Roberta Bart LED Mvp Longformer",
     .families =
         "roberta roberta-prelayernorm bart longformer led mvp bridgetower clap data2vec-text ibert lilt mega mra",
     .named = roberta,
     .single = "cls A sep",
     .pair = "cls A sep sep B sep",
     .trim = Trim::as_config},
    {.names = "LayoutLMv3",
     .families = "layoutlmv3",
     .named = roberta,
     .prefix = true,
     .single = "cls A sep",
     .pair = "cls A sep sep B sep",
     .trim = Trim::always},
    {.names = "Luke",
     .families = "luke",
     .named = roberta,
     .single = "cls A sep",
     .pair = "cls A sep sep B sep",
     .trim = Trim::with_prefix,
     .more_special = "entity_token_1=<ent> entity_token_2=<ent2> entity_unk_token=[UNK] entity_pad_token=[PAD] "
                     "entity_mask_token=[MASK] entity_mask2_token=[MASK2]"},
    {.names = "Blenderbot", .families = "blenderbot", .named = roberta, .mask_takes_blank = true, .prefix = true},
    {.names = "Deberta",
     .families = "deberta",
     .named = {"[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"},
     .single = "cls A sep",
     .pair = "cls A sep sep B sep"},
    {.names = "GPTNeoX",
     .families = "gpt_neox mamba mamba2 falcon_mamba mpt olmo olmoe rwkv xlstm",
     .named = {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "", "<|padding|>", "", ""},
     .normalizer = nfc},
    {.names = "Cohere",
     .families = "cohere cohere2 aya_vision",
     .named = {"<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>", "<SEP>", "<PAD>", "<CLS>", "<MASK_TOKEN>"},
     .normalizer = nfc,
     .splits = digits},
    {.names = "Qwen2",
     .families = "qwen2 qwen2_moe qwen2_vl qwen2_5_vl qwen2_audio qwen2_5_omni qwen3 qwen3_moe qwen3_next qwen3_vl "
                 "qwen3_vl_moe qwen3_omni_moe internvl",
     .named = qwen,
     .normalizer = nfc,
     .splits = qwen2_split,
     .uses_regex = false},
    {.names = "Qwen3_5",
     .families = "qwen3_5 qwen3_5_moe qwen3_5_text qwen3_5_moe_text",
     .named = qwen,
     .normalizer = nfc,
     .splits = qwen3_5_split,
     .uses_regex = false},
    {.names = "CLIP",
     .families = "clip clipseg groupvit oneformer owlvit owlv2 xclip",
     .named = {"<|startoftext|>", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>", "", ""},
     .has_unknown = true,
     .suffix = "</w>",
     .normalizer = clip_normalizer,
     .splits = clip_split,
     .obeys_prefix = false,
     .single = "bos A eos",
     .pair = "bos A eos eos B eos"},
    {.names = "Nougat",
     .families = "nougat",
     .named = {"<s>", "</s>", "<unk>", "", "<pad>", "", ""},
     .normalizer = R"({"type": "NFKC"})",
     .splits = nougat_splits,
     .obeys_prefix = false,
     .single = "bos A eos",
     .pair = "A B:1"},
    {.names = "Whisper",
     .families = "whisper",
     .named = end_of_text,
     .single = "<|startoftranscript|> <|notimestamps|> A eos",
     .pair = "<|startoftranscript|> <|notimestamps|> A B:1 eos"},
    {.names = "OpenAIGPT",
     .families = "openai-gpt",
     .named = {"", "", "<unk>", "", "", "", ""},
     .has_unknown = true,
     .suffix = "</w>",
     .normalizer = openai_normalizer,
     .splits = words_of_bert,
     .bytes = false},
    {.names = "Herbert",
     .families = "herbert",
     .named = {"", "", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
     .has_unknown = true,
     .suffix = "</w>",
     .normalizer = herbert_normalizer,
     .splits = words_of_bert,
     .bytes = false,
     .single = "cls=0 A sep=2",
     .pair = "cls=0 A sep=2 B:1 sep=2:1"},
    {.names = "Bert", .words = true, .named = bert, .single = "cls A sep", .pair = "cls A sep B:1 sep:1"},
    {.names = "MPNet",
     .families = "mpnet",
     .words = true,
     .named = {"<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"},
     .mask_takes_blank = true,
     .single = "cls A sep",
     .pair = "cls A sep sep B sep",
     .trim = Trim::without_prefix},
    {.names = "Funnel",
     .families = "funnel",
     .words = true,
     .named = {"<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>"},
     .single = "cls:2 A sep",
     .pair = "cls:2 A sep B:1 sep:1"},
    {.names = "Splinter",
     .families = "splinter",
     .words = true,
     .named = bert,
     .single = "cls A sep",
     .pair = "cls A [QUESTION] . sep B:1 sep:1",
     .more_special = "question_token=[QUESTION]"},
};

bool has_word(std::string_view list, std::string_view word) {
  return !word.empty() && str(" ", list, " ").find(str(" ", word, " ")) != std::string::npos;
}

}  // namespace

const VocabularyClass& vocabulary_class(std::string_view tokenizer_class, std::string_view model_type, bool words) {
  for (std::string_view end : {"Fast", "Tokenizer"})
    if (tokenizer_class.ends_with(end)) tokenizer_class.remove_suffix(end.size());
  const VocabularyClass* usual = nullptr;
  for (const VocabularyClass& each : vocabulary_classes) {
    if (each.words != words) continue;
    if (!usual) usual = &each;
    if (has_word(each.names, tokenizer_class) || (tokenizer_class.empty() && has_word(each.families, model_type)))
      return each;
  }
  return *usual;
}

}  // namespace easydel::text
