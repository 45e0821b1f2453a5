#include "easydel/train/row_notes.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::train {
namespace {

using data::RowKind;

// Special tokens and the end token, by id.
std::vector<uint8_t> special_tokens(const text::Tokenizer& tokenizer) {
  std::vector<uint8_t> out(size_t(tokenizer.id_limit()), 0);
  for (size_t id = 0; id < out.size(); ++id) out[id] = tokenizer.is_special(text::TokenId(id)) ? 1 : 0;
  if (const auto end = tokenizer.eos_id(); end && size_t(*end) < out.size()) out[size_t(*end)] = 1;
  return out;
}

// Whether an answer of the row may end without a stop token because the user says so.
bool ends_by_request(const data::TypedRow& row) {
  if (row.learn && (row.learn->eos == data::TrainOnEos::none || row.learn->eos == data::TrainOnEos::last)) return true;
  return std::ranges::any_of(std::array{&row.text, &row.prompt, &row.completion, &row.chosen, &row.rejected},
                             [](const Value* messages) { return messages->is_list() && data::has_effect(*messages); });
}

bool has_answers(const data::TypedRow& row) {
  return row.conversational || row.kind == RowKind::prompt_completion || row.kind == RowKind::preference ||
         row.kind == RowKind::unpaired;
}

class AnswerEnds {
 public:
  AnswerEnds(const RowNotes& notes, const text::Tokenizer& tokenizer) : notes_(notes), tokenizer_(tokenizer) {}

  // Whether a run of learned tokens ends with another token than a stop token and blanks. `is_cut`: the ends of
  // sequences may be missing.
  bool has_open_one(const data::Example& example, bool is_cut) const {
    size_t begin = 0;
    for (const int32_t length : example.lengths) {
      const size_t end = begin + size_t(length);
      const auto learned = [&](size_t i) {
        if (!notes_.labels_are_shifted) return example.labels[i] != data::no_label;
        return i > begin && example.labels[i - 1] != data::no_label;
      };
      bool stops = false;  // the run until here
      for (size_t i = begin; i < end; ++i) {
        if (!learned(i)) continue;
        const int32_t token = example.tokens[i];
        const bool is_end = std::ranges::find(notes_.end_tokens, token) != notes_.end_tokens.end();
        const bool ends_run = i + 1 == end || !learned(i + 1);
        stops = is_end || (stops && is_blank(token));
        if (!ends_run) continue;
        if (!stops && !(is_cut && i + 1 == end)) return true;
        stops = false;
      }
      begin = end;
    }
    return false;
  }

 private:
  bool is_blank(int32_t token) const {
    return tokenizer_.decode(std::span(&token, 1), false).find_first_not_of(" \t\r\n") == std::string::npos;
  }

  const RowNotes& notes_;
  const text::Tokenizer& tokenizer_;
};

}  // namespace

data::Prepare with_notes(data::Prepare prepare, RowNotes notes, const text::Tokenizer& tokenizer) {
  return [prepare = std::move(prepare), notes = std::move(notes), &tokenizer,
          special = special_tokens(tokenizer)](const data::TypedRow& row) {
    data::Prepared out = prepare(row);
    if (!out.example || out.example->tokens.empty()) return out;
    for (const int32_t label : out.example->labels)
      if (label >= 0 && size_t(label) < special.size() && special[size_t(label)] != 0 &&
          std::ranges::find(out.special, label) == out.special.end())
        out.special.push_back(label);
    const int32_t most = *std::ranges::max_element(out.example->tokens);
    if (most >= notes.vocabulary)
      refuse(row.where,
             str("its token ", most, " ('", tokenizer.token_of(most), "') is outside the model's vocabulary of ",
                 counted(notes.vocabulary, "token")),
             "the tokenizer belongs to another model; give the model's own");
    if (notes.end_tokens.empty() || !has_answers(row) || ends_by_request(row)) return out;
    const AnswerEnds ends(notes, tokenizer);
    const bool is_cut = out.cut_tokens > 0;
    if (ends.has_open_one(*out.example, is_cut) ||
        std::ranges::any_of(out.further, [&](const auto& one) { return ends.has_open_one(one, is_cut); }))
      out.mistakes.add(data::RowMistake::open_answer);
    return out;
  };
}

}  // namespace easydel::train
