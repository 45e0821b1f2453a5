#include "easydel/data/row_mistakes.h"

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::data {
namespace {

using enum RowMistake;

struct Words {
  RowMistake mistake;
  const char* name;           // in documents
  const char *one, *several;  // after "1 of 9 rows", "2 of 9 rows"
  bool teaches_nothing;       // the row does not change the model
  MistakeText alone;          // of the row by itself
};

constexpr std::array<Words, row_mistakes> all_words{
    {{nothing_learned,
      "nothing_learned",
      "has nothing to learn and is left out",
      "have nothing to learn and are left out",
      true,
      {"the row has no tokens to train on, so it is left out",
       "give it an answer that is not empty and not cut off by max_length, or drop it"}},
     {answer_cut,
      "answer_cut",
      "loses a part of its answer to a limit of length",
      "lose a part of their answers to a limit of length",
      false,
      {"a limit of length takes a part of the answer", "raise the limit, or shorten the row"}},
     {answer_cut_away,
      "answer_cut_away",
      "loses its whole answer to a limit of length",
      "lose their whole answers to a limit of length",
      false,
      {"a limit of length takes the whole answer", "raise the limit, or shorten the prompt"}},
     {equal_answers,
      "equal_answers",
      "has the same answer as chosen and as rejected",
      "have the same answer as chosen and as rejected",
      true,
      {"chosen and rejected are the same, so there is nothing to prefer", "give two different answers, or drop it"}},
     {equal_tokens,
      "equal_tokens",
      "has the same tokens as chosen and as rejected, though the answers differ",
      "have the same tokens as chosen and as rejected, though the answers differ",
      true,
      {"chosen and rejected differ, but the tokens that are left of them do not",
       "raise the limits of length, so that they differ within them, or drop it"}},
     {merged_prompt,
      "merged_prompt",
      "has a prompt whose last tokens change when the answer follows",
      "have a prompt whose last tokens change when the answer follows",
      false,
      {"the tokens of the prompt are not the first tokens of prompt and answer, so its end is not what the model sees "
       "before it answers",
       "end the prompt where a token ends, such as before a space"}},
     {equal_group,
      "equal_group",
      "can only have completions of equal rewards",
      "can only have completions of equal rewards",
      false,
      {"all completions of the row have the same reward, so there is nothing to prefer",
       "give the row what its rewards read (such as the right answer), or drop it"}},
     {open_answer,
      "open_answer",
      "has an answer that does not end in a stop token",
      "have answers that do not end in a stop token",
      false,
      {"an answer that is learned does not end in a stop token, so the model does not learn to stop there",
       "end each of the assistant's turns with a token that ends generation, in the chat template or in the row"}},
     {masked_answer,
      "masked_answer",
      "has an answer of which nothing is learned",
      "have answers of which nothing is learned",
      false,
      {"nothing is learned of one of the answers",
       "give the answer a text; `easydel data show` shows what the chat template makes of it"}}}};

}  // namespace

void RowMistakes::add_cut(int64_t before, int64_t after) {
  if (after < before) add(after == 0 ? answer_cut_away : answer_cut);
}

MistakeText text_of(RowMistake mistake) { return all_words[size_t(mistake)].alone; }

void MistakeCounts::add(RowMistakes mistakes, const std::string& where) {
  bool useless = false;
  for (const Words& words : all_words) {
    if (!mistakes.has(words.mistake)) continue;
    Count& count = counts_[size_t(words.mistake)];
    if (count.rows++ == 0) count.first = where;
    useless |= words.teaches_nothing;
  }
  useless_ += useless;
}

void MistakeCounts::add(const MistakeCounts& others) {
  for (size_t i = 0; i < row_mistakes; ++i) {
    if (counts_[i].rows == 0) counts_[i].first = others.counts_[i].first;
    counts_[i].rows += others.counts_[i].rows;
  }
  useless_ += others.useless_;
}

std::vector<std::string> MistakeCounts::lines(int64_t rows) const {
  std::vector<std::string> out;
  for (const Words& words : all_words)
    if (const Count& count = counts_[size_t(words.mistake)]; count.rows > 0)
      out.push_back(str(count.rows, " of ", counted(rows, "row"), " ", count.rows == 1 ? words.one : words.several,
                        count.rows == 1 ? ": " : "; the first is ", count.first));
  return out;
}

Value MistakeCounts::document() const {
  Value out = Value::map();
  for (const Words& words : all_words)
    if (const Count& count = counts_[size_t(words.mistake)]; count.rows > 0) {
      Value& one = out.set(words.name, Value::map());
      one.set("rows", Value::integer(count.rows));
      one.set("first", Value::text(count.first));
    }
  if (useless_ > 0) out.set("useless", Value::integer(useless_));
  return out;
}

MistakeCounts MistakeCounts::of_document(const Value& document) {
  MistakeCounts out;
  for (const Words& words : all_words)
    if (const Value* const one = document.find(words.name))
      out.counts_[size_t(words.mistake)] = {one->find("rows")->as_int().value_or(0), one->find("first")->scalar};
  if (const Value* const useless = document.find("useless")) out.useless_ = useless->as_int().value_or(0);
  return out;
}

std::string never_stops(const std::vector<int32_t>& ends, const std::set<int32_t>& learned,
                        const text::Tokenizer& tokenizer) {
  std::vector<std::string> names;
  for (const int32_t end : ends) {
    if (learned.contains(end)) return "";
    names.push_back("'" + tokenizer.token_of(end) + "'");
  }
  if (names.empty()) return "";
  return str("no row learns ", join(names, " or "), ", which ", names.size() == 1 ? "ends" : "end",
             " an answer: the model cannot learn to stop");
}

}  // namespace easydel::data
