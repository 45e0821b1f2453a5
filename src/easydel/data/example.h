// One training example: flat tokens, their labels already shifted, and where its sequences end. Knows no text, no
// torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace easydel::data {

inline constexpr int32_t no_label = -100;

// `tokens` and `labels` are parallel; labels[i] is the token to be predicted at i, or no_label. Sequences stand one
// after the other: `lengths` adds up to tokens.size(). A plain row has one sequence, a packed row one for each
// document (they do not see each other), a preference pair two (chosen, rejected).
struct Example {
  std::vector<int32_t> tokens;
  std::vector<int32_t> labels;
  std::vector<int32_t> lengths;
  std::vector<float> values;  // a method's own numbers, one meaning for all its examples (precomputed log-probs)

  int64_t labelled() const;
  // Appends a sequence. `learn[i]` says whether token i may be a label; empty: all may. The label of the last token is
  // no_label, as is the first token's place as a label: nothing stands before it.
  void add_sequence(std::span<const int32_t> ids, std::span<const uint8_t> learn = {});
  // The same where a token's label is the token itself.
  void add_unshifted(std::span<const int32_t> ids, std::span<const uint8_t> learn = {});
};

}  // namespace easydel::data
