// What rows may have wrong although they can be read and prepared: answers that a limit took, answers that are equal.
// Counted while data are read, and told before anything is learned.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::data {

enum class RowMistake : uint8_t {
  nothing_learned,  // the row is left out
  answer_cut,       // a limit of length took a part of an answer
  answer_cut_away,  // it took a whole answer
  equal_answers,    // chosen and rejected are the same
  equal_tokens,     // chosen and rejected differ, but what is learned of them does not
  merged_prompt,    // the prompt's last tokens are others once the answer follows
  equal_group,      // every completion of the prompt has the same reward
  open_answer,      // an answer that is learned does not end in a stop token
  masked_answer     // nothing is learned of one of a conversation's answers, though no mark says so
};
inline constexpr size_t row_mistakes = 9;

// Those of one row.
class RowMistakes {
 public:
  void add(RowMistake mistake) { bits_ |= bit(mistake); }
  void add(RowMistakes others) { bits_ |= others.bits_; }
  // Of an answer of `before` tokens, limits of length left `after`.
  void add_cut(int64_t before, int64_t after);
  bool has(RowMistake mistake) const { return (bits_ & bit(mistake)) != 0; }

 private:
  static constexpr uint32_t bit(RowMistake mistake) { return uint32_t{1} << uint32_t(mistake); }
  uint32_t bits_ = 0;
};

// What to say of one row alone, and what would help.
struct MistakeText {
  const char *problem, *remedy;
};
MistakeText text_of(RowMistake mistake);

// How many rows have each of them.
class MistakeCounts {
 public:
  void add(RowMistakes mistakes, const std::string& where);  // of a row: "train.jsonl:17"
  void add(const MistakeCounts& others);
  int64_t of(RowMistake mistake) const { return counts_[size_t(mistake)].rows; }
  int64_t useless() const { return useless_; }  // rows that nothing can be learned from
  // "3 of 500 rows have the same answer as chosen and rejected; the first is train.jsonl:17", for each that occurs.
  std::vector<std::string> lines(int64_t rows) const;
  // A map {equal_answers: {rows, first}, ..., useless} of those that occur, and back.
  Value document() const;
  static MistakeCounts of_document(const Value& document);

 private:
  struct Count {
    int64_t rows = 0;
    std::string first;
  };
  std::array<Count, row_mistakes> counts_;
  int64_t useless_ = 0;
};

// What is wrong if no row learns any of the tokens that end an answer; empty: one does, or there are none.
std::string never_stops(const std::vector<int32_t>& ends, const std::set<int32_t>& learned,
                        const text::Tokenizer& tokenizer);

}  // namespace easydel::data
