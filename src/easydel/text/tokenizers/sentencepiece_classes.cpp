// The table of classes, by name.
#include "easydel/text/tokenizers/sentencepiece_classes.h"

#include <string>
#include <vector>

#include "easydel/base/error.h"

namespace easydel::text {
namespace {

constexpr std::string_view languages[] = {
    "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN", "hi_IN", "it_IT",
    "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP", "nl_XX", "ro_RO", "ru_RU", "si_LK",
    "tr_TR", "vi_VN", "zh_CN", "af_ZA", "az_AZ", "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE",
    "km_KH", "mk_MK", "ml_IN", "mn_MN", "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE", "ta_IN",
    "te_IN", "th_TH", "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI"};

constexpr SentencePieceClass::Names roberta = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"};
constexpr SentencePieceClass::Names albert = {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"};
constexpr SentencePieceClass::Names fairseq_without_mask = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", ""};

std::string replace(std::string_view pattern, std::string_view content, bool regex = true) {
  return str(R"({"type": "Replace", "pattern": {")", regex ? "Regex" : "String", "\": \"", pattern,
             R"("}, "content": ")", content, "\"}\n");
}

// Lines that several classes share, with JSON escapes.
const std::string blank_text = "\xE2\x96\x81";
const std::string quotes = replace("``", R"(\")", false) + replace("''", R"(\")", false);
const std::string one_blank = replace(" {2,}", " ");
const std::string strip_right = "{\"type\": \"Strip\", \"strip_left\": false, \"strip_right\": true}\n";
const std::string plain_blanks = replace(R"(\\s{2,}|[\\n\\r\\t])", " ") + "{\"type\": \"NFC\"}\n" + strip_right;
const std::string lower = "do_lower_case?{\"type\": \"Lowercase\"}\n";
const std::string accents = "keep_accents!{\"type\": \"NFKD\"}\nkeep_accents!{\"type\": \"StripAccents\"}\n";
const std::string map_then_blank = "charsmap\n" + one_blank;

const std::string albert_steps = quotes + accents + lower + "charsmap";
const std::string big_bird_steps = replace(" {2,}", blank_text);
const std::string deberta_steps = lower + plain_blanks;
const std::string pegasus_without_map = replace(R"(\\n)", " ") + one_blank;
const std::string rembert_steps = quotes + one_blank + accents + lower + "charsmap";
const std::string seamless_steps = replace(R"([\\n\\r\\t])", " ") + "{\"type\": \"NFKC\"}\n" + strip_right +
                                   replace(" +" + blank_text, blank_text) + replace("^" + blank_text + "+$", "") +
                                   replace(" {2,}", blank_text);
const std::string xlnet_steps = quotes + "{\"type\": \"NFKD\"}\n{\"type\": \"StripAccents\"}\n" + lower + "charsmap";

// Must follow the strings above, which it uses.
const std::vector<SentencePieceClass> classes = {
    {.name = "Albert",
     .families = "albert yoso",
     .unknown = 1,
     .named = albert,
     .normalizers = albert_steps,
     .lowers = true,
     .without_prefix = "never",
     .single = "cls A sep",
     .pair = "cls A sep B:1 sep:1",
     .yields = true},
    {.name = "Barthez",
     .families = "barthez",
     .named = roberta,
     .mask_takes_blank = true,
     .normalizers = plain_blanks,
     .pre_tokenizers = "Metaspace",
     .without_prefix = "never"},
    {.name = "BigBird",
     .families = "big_bird",
     .unknown = 100,
     .finds_unknown = true,
     .named = {"<s>", "</s>", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"},
     .mask_takes_blank = true,
     .normalizers = big_bird_steps,
     .pre_tokenizers = "Metaspace",
     .without_prefix = "never",
     .single = "cls A sep",
     .pair = "cls A sep B:1 sep:1"},
    {.name = "Camembert",
     .families = "camembert",
     .numbering = SentencePieceClass::Numbering::camembert,
     .named = roberta,
     .mask_takes_blank = true,
     .normalizers = "charsmap",
     .without_prefix = "never",
     .single = "bos A eos",
     .pair = "bos A eos eos B eos"},
    {.name = "DebertaV2",
     .families = "deberta-v2",
     .unknown = -1,
     .finds_unknown = true,
     .named = {"[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"},
     .normalizers = deberta_steps,
     .pre_tokenizers = "split_by_punct?Punctuation\nMetaspace",
     .without_prefix = "first",
     .single = "cls A sep",
     .pair = "cls A sep B:1 sep:1"},
    {.name = "MBart",
     .families = "mbart",
     .numbering = SentencePieceClass::Numbering::fairseq,
     .named = roberta,
     .mask_takes_blank = true,
     .languages = std::span(languages).first(25),
     .single = "A eos lang",
     .pair = "A B eos lang"},
    {.name = "MBart50",
     .families = "mbart50",
     .numbering = SentencePieceClass::Numbering::fairseq,
     .named = {"", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
     .first = NamedTokens::cls,
     .mask_takes_blank = true,
     .languages = languages,
     .normalizers = map_then_blank,
     .without_charsmap = one_blank,
     .pre_tokenizers = "Metaspace",
     .single = "lang A eos",
     .pair = "lang A B eos"},
    {.name = "Nllb",
     .families = "nllb nllb-moe",
     .numbering = SentencePieceClass::Numbering::nllb,
     .merges = true,
     .named = roberta,
     .mask_takes_blank = true,
     .mask_is_normalized = true,
     .normalizers = map_then_blank,
     .pre_tokenizers = "Metaspace",
     .single = "lang A eos",
     .pair = "lang A B eos",
     .legacy_single = "A eos lang",
     .legacy_pair = "A B eos lang",
     .language = "eng_Latn",
     .language_keeps_name = true},
    {.name = "Pegasus",
     .families = "pegasus",
     .numbering = SentencePieceClass::Numbering::pegasus,
     .unknown = -1,
     .finds_unknown = true,
     .named = {"", "</s>", "<unk>", "", "<pad>", "", "<mask_2>"},
     .normalizers = map_then_blank,
     .without_charsmap = pegasus_without_map,
     .pre_tokenizers = "Metaspace",
     .single = "A eos",
     .pair = "A B eos"},
    {.name = "Reformer",
     .families = "reformer",
     .merges = true,
     .named = {"", "</s>", "<unk>", "", "", "", ""},
     .all_special = true,
     .normalizers = map_then_blank,
     .pre_tokenizers = "Metaspace"},
    {.name = "RemBert",
     .families = "rembert",
     .unknown = 2,
     .named = albert,
     .all_special = true,
     .normalizers = rembert_steps,
     .keeps_accents = true,
     .pre_tokenizers = "Metaspace",
     .without_prefix = "never"},
    {.name = "SeamlessM4T",
     .families = "seamless_m4t seamless_m4t_v2",
     .numbering = SentencePieceClass::Numbering::seamless,
     .merges = true,
     .named = fairseq_without_mask,
     .normalizers = seamless_steps,
     .pre_tokenizers = "Metaspace",
     .prefix = "first",
     .without_prefix = "first",
     .single = "eos lang A eos",
     .pair = "eos lang A B eos",
     .language_key = "tgt_lang",
     .language = "__fra__"},
    {.name = "T5",
     .families = "t5 mt5 switch_transformers musicgen musicgen_melody",
     .numbering = SentencePieceClass::Numbering::sentinels,
     .unknown = 2,
     .named = {"", "</s>", "<unk>", "", "<pad>", "", ""},
     .normalizers = "charsmap",
     .single = "A eos",
     .pair = "A eos B eos"},
    {.name = "Udop",
     .families = "udop",
     .unknown = 2,
     .finds_unknown = true,
     .named = {"", "</s>", "<unk>", "</s>", "<pad>", "", ""},
     .single = "A eos",
     .pair = "A eos B eos"},
    {.name = "XGLM",
     .families = "xglm",
     .named = fairseq_without_mask,
     .made_up = 7,
     .normalizers = map_then_blank,
     .without_charsmap = one_blank,
     .pre_tokenizers = "Metaspace",
     .without_prefix = "never",
     .single = "eos A",
     .pair = "eos A eos eos B"},
    {.name = "XLMRoberta",
     .families = "xlm-roberta xmod gte jina_embeddings_v3 metaclip_2 trocr",
     .numbering = SentencePieceClass::Numbering::fairseq,
     .named = roberta,
     .normalizers = "charsmap",
     .without_prefix = "never",
     .single = "bos A eos",
     .pair = "bos A eos eos B eos"},
    {.name = "XLNet",
     .families = "xlnet",
     .unknown = -1,
     .named = {"<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>"},
     .mask_takes_blank = true,
     .normalizers = xlnet_steps,
     .single = "A sep cls:2",
     .pair = "A sep B:1 sep:1 cls:2"},
};

}  // namespace

const SentencePieceClass* sentencepiece_class(std::string_view tokenizer_class, std::string_view model_type) {
  if (tokenizer_class.ends_with("Fast")) tokenizer_class.remove_suffix(4);
  for (const SentencePieceClass& each : classes) {
    if (tokenizer_class == str(each.name, "Tokenizer")) return &each;
    bool of_family = tokenizer_class.empty() && !model_type.empty() &&
                     str(" ", each.families, " ").find(str(" ", model_type, " ")) != std::string::npos;
    if (of_family) return &each;
  }
  return nullptr;
}

}  // namespace easydel::text
