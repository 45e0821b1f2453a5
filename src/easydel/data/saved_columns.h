// The columns of an example that `mixture.save` can write: named lists of numbers. A method says which of them contain
// its training data.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/data/example.h"

namespace easydel::data {

struct SavedRow {
  const Example& example;
  int64_t number;            // from 1, for messages
  const std::string& where;  // the section that asks for the files, for messages
  bool shifted = true;       // a label is the token after its own, else its own
};

enum class SavedWhen : uint8_t {
  always,
  with_attention_mask,  // tokenization.return_attention_mask
  packed,               // some example has several sequences
  masked,               // some token after the first of its sequence is not learned
  continued,            // the last token of some sequence has a label: its document goes on in another row
  given                 // some example has numbers for it
};

struct SavedColumn {
  std::string_view name;  // empty: tokenization.output_field
  std::vector<int32_t> (*values)(const SavedRow& row);
  SavedWhen when = SavedWhen::always;
  std::vector<float> (*numbers)(const SavedRow& row) = nullptr;  // a column of these instead of values
};

std::vector<int32_t> saved_tokens(const SavedRow& row);
std::vector<int32_t> saved_attention_mask(const SavedRow& row);  // a 1 for each token
std::vector<int32_t> saved_lengths(const SavedRow& row);         // tokens of each sequence
std::vector<int32_t> saved_labels(const SavedRow& row);          // not shifted; no_label: not learned
std::vector<int32_t> saved_next_labels(const SavedRow& row);     // of each sequence: its last token's label
std::vector<float> saved_weights(const SavedRow& row);           // of each token in the loss; empty: all 1
std::vector<float> saved_next_weights(const SavedRow& row);      // of saved_next_labels; empty: all 1
std::vector<int32_t> saved_mark(const SavedRow& row);            // of an answer: 1 if it is good, else 0
std::vector<float> saved_margin(const SavedRow& row);            // of a pair; empty: none
// Of pairs: both sequences begin with the prompt, which is not learned. UserError if max_length cut the two prompts
// differently.
std::vector<int32_t> saved_prompt(const SavedRow& row);
std::vector<int32_t> saved_chosen(const SavedRow& row);
std::vector<int32_t> saved_rejected(const SavedRow& row);
std::vector<int32_t> saved_third(const SavedRow& row);         // of the third answer; empty: there is none
std::vector<int32_t> saved_first_prompt(const SavedRow& row);  // of the first answer alone
std::vector<int32_t> saved_first_whole(const SavedRow& row);   // a whole sequence
std::vector<int32_t> saved_second_whole(const SavedRow& row);

inline constexpr std::array sequence_columns{
    SavedColumn{"", saved_tokens},
    SavedColumn{"attention_mask", saved_attention_mask, SavedWhen::with_attention_mask},
    SavedColumn{"labels", saved_labels, SavedWhen::masked},
    SavedColumn{"seq_lengths", saved_lengths, SavedWhen::packed},
    SavedColumn{"next_labels", saved_next_labels, SavedWhen::continued},
    SavedColumn{"weights", nullptr, SavedWhen::given, saved_weights},
    SavedColumn{"next_weights", nullptr, SavedWhen::given, saved_next_weights}};
// Under TRL's names.
inline constexpr std::array pair_columns{SavedColumn{"prompt_ids", saved_prompt},
                                         SavedColumn{"chosen_ids", saved_chosen},
                                         SavedColumn{"rejected_ids", saved_rejected}};

inline constexpr std::array triple_columns{
    SavedColumn{"prompt_ids", saved_prompt}, SavedColumn{"chosen_ids", saved_chosen},
    SavedColumn{"rejected_ids", saved_rejected}, SavedColumn{"reference_ids", saved_third}};
// Of one marked answer with its prompt.
inline constexpr std::array answer_columns{SavedColumn{"prompt_ids", saved_first_prompt},
                                           SavedColumn{"completion_ids", saved_chosen},
                                           SavedColumn{"label", saved_mark}};
// Of pairs that are learned as a whole.
inline constexpr std::array whole_pair_columns{SavedColumn{"chosen_ids", saved_first_whole},
                                               SavedColumn{"rejected_ids", saved_second_whole},
                                               SavedColumn{"margin", nullptr, SavedWhen::given, saved_margin}};

// What is written of a method's examples.
struct SavedExamples {
  std::string method;                    // for messages
  std::span<const SavedColumn> columns;  // none: they cannot be saved
  bool shifted = true;                   // as SavedRow
};

}  // namespace easydel::data
