// Rows of ready tokens: what mixture.save, TRL's preparation and other programs write.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "easydel/data/rows.h"

namespace easydel::data {

struct TokenRow {
  std::vector<int32_t> ids;
  std::vector<int32_t> labels;       // for each id, not shifted: what to learn there, or no_label; empty: the ids
  std::vector<int32_t> lengths;      // of its sequences; empty: one
  std::vector<int32_t> next_labels;  // for each sequence: what its last token predicts, or no_label; empty: nothing
  std::vector<float> weights;        // for each id; empty: all 1
};

// Fields that a row of tokens may have besides the ids.
inline constexpr std::array token_fields{"labels",      "completion_mask", "assistant_masks", "attention_mask",
                                         "seq_lengths", "next_labels",     "weights"};

// The field of the ids, `tokens_field` or input_ids, if it is a list of numbers; empty: the row has none.
std::string ids_field(const Row& row, const std::string& tokens_field);
// Tokens with attention_mask 0 are left out: they are padding. A token is learned if labels, completion_mask and
// assistant_masks, as far as they are there, all say so. UserError "file:line: ..." for lists of other lengths, values
// that are no ids, masks other than 0 and 1, negative weights.
TokenRow token_row(const Row& row, const std::string& ids_field);

}  // namespace easydel::data
