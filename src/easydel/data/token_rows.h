// Rows of ready tokens: what mixture.save, TRL's preparation and other programs write.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "easydel/data/rows.h"

namespace easydel::data {

struct TokenRow {
  std::vector<int32_t> ids;
  std::vector<int32_t> labels;       // for each id, not shifted: what to learn there, or no_label; empty: the ids
  std::vector<int32_t> lengths;      // of its sequences; empty: one
  std::vector<int32_t> next_labels;  // for each sequence: what its last token predicts, or no_label; empty: nothing
  std::vector<float> weights;        // for each id; empty: all 1
  std::vector<float> next_weights;   // of next_labels; empty: all 1
};

// A prompt with its answers as ready tokens. Nothing is added to them.
struct TokenAnswers {
  std::vector<int32_t> prompt;
  std::vector<int32_t> completion;                   // of a row with one answer
  std::vector<int32_t> chosen, rejected, reference;  // of a pair; reference: empty if there is none
};

// Fields that a row of tokens may have besides the ids.
inline constexpr std::array token_fields{"labels",      "completion_mask", "assistant_masks", "attention_mask",
                                         "seq_lengths", "next_labels",     "weights",         "next_weights"};
// Fields of rows of answers as ready tokens, each with the name that TRL had for it before.
inline constexpr std::array answer_fields{
    std::pair{"prompt_ids", "prompt_input_ids"}, std::pair{"completion_ids", "completion_input_ids"},
    std::pair{"chosen_ids", "chosen_input_ids"}, std::pair{"rejected_ids", "rejected_input_ids"},
    std::pair{"reference_ids", "reference_input_ids"}};

// The field of the ids, `tokens_field` or input_ids, if it is a list of numbers; empty: the row has none.
std::string ids_field(const Row& row, const std::string& tokens_field);
// Tokens with attention_mask 0 are left out: they are padding. A token is learned if labels, completion_mask and
// assistant_masks, as far as they are there, all say so. UserError "file:line: ..." for lists of other lengths, values
// that are no ids, masks other than 0 and 1, negative weights.
TokenRow token_row(const Row& row, const std::string& ids_field);

// Whether the row has the tokens of chosen and rejected answers, or of a prompt and its completion.
bool has_token_pair(const Row& row);
bool has_token_completion(const Row& row);
// UserError "file:line: ..." for values that are no ids.
TokenAnswers token_answers(const Row& row);

}  // namespace easydel::data
