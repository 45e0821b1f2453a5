#include "easydel/text/tokenizers/class_decoding.h"

#include <algorithm>

#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr std::string_view end_of_word = "</w>";

struct DecodingRow {
  std::vector<std::string_view> classes, families;
  ClassDecoding decoding;
};

const std::vector<DecodingRow>& class_decodings() {
  static const std::vector<DecodingRow> all = {
      {{"CLIPTokenizer"},
       {"aimv2", "clip", "clipseg", "groupvit", "omdet-turbo", "oneformer", "owlv2", "owlvit", "sam3", "sam3_video",
        "xclip"},
       {.ends_words = true}},
      {{"ParakeetTokenizer", "LasrTokenizer"},
       {"granite_speech5_ctc", "lasr_ctc", "lasr_encoder", "nemotron3_5_asr", "nemotron_asr_streaming", "parakeet_ctc",
        "parakeet_rnnt", "parakeet_tdt"},
       {.joins_runs = true}},
      {{"WhisperTokenizer"}, {"whisper"}, {.transcribes = true}},
  };
  return all;
}

std::string without_outer_blanks(std::string_view text) {
  size_t begin = 0, end = 0;
  bool seen = false;
  for (size_t at = 0; at < text.size();) {
    const size_t from = at;
    if (is_space(next_character(text, at))) continue;
    if (!seen) begin = from;
    seen = true;
    end = at;
  }
  return std::string(text.substr(begin, end - begin));
}

// The bytes of <|1.08|> at the beginning of `text`; 0: something else.
size_t time_stamp_length(std::string_view text) {
  const auto digits = [&](size_t at) {
    const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    return end - at;
  };
  if (!text.starts_with("<|")) return 0;
  const size_t whole = digits(2), point = 2 + whole;
  if (whole == 0 || !text.substr(point).starts_with('.')) return 0;
  const size_t part = digits(point + 1), end = point + 1 + part;
  return part > 0 && text.substr(end).starts_with("|>") ? end + 2 : 0;
}

}  // namespace

std::vector<TokenId> ClassDecoding::ids(std::span<const TokenId> ids, const Tokenizer& tokenizer,
                                        bool skip_special_tokens) const {
  std::vector<TokenId> out(ids.begin(), ids.end());
  if (transcribes && skip_special_tokens && !out.empty() && out[0] == tokenizer.id_of("<|startofprev|>"))
    out.erase(out.begin(), std::find(out.begin(), out.end(), tokenizer.id_of("<|startoftranscript|>").value_or(-1)));
  if (joins_runs) {
    out.erase(std::unique(out.begin(), out.end()), out.end());
    if (const auto pad = tokenizer.pad_id()) std::erase(out, *pad);
  }
  return out;
}

std::string ClassDecoding::text(std::string text, bool time_stamps) const {
  if (ends_words) {
    for (size_t at = 0; (at = text.find(end_of_word, at)) != std::string::npos; ++at)
      text.replace(at, end_of_word.size(), " ");
    text = without_outer_blanks(text);
  }
  if (transcribes && !time_stamps)
    for (size_t at = 0; (at = text.find("<|", at)) != std::string::npos;) {
      const size_t length = time_stamp_length(std::string_view(text).substr(at));
      length ? (void)text.erase(at, length) : (void)++at;
    }
  return text;
}

ClassDecoding class_decoding(std::string_view tokenizer_class, std::string_view model_type) {
  if (tokenizer_class.ends_with("Fast")) tokenizer_class.remove_suffix(4);
  const bool by_family = tokenizer_class.empty();
  for (const DecodingRow& row : class_decodings()) {
    const auto& names = by_family ? row.families : row.classes;
    if (std::ranges::find(names, by_family ? model_type : tokenizer_class) != names.end()) return row.decoding;
  }
  return {};
}

}  // namespace easydel::text
