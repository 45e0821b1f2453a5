// One training example: flat tokens, their shifted labels, the lengths of its sequences, and a method's own columns.
// Knows neither text nor torch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace easydel::data {

inline constexpr int32_t no_label = -100;

// A method's own numbers about an example: one for the whole example, one per sequence, or one per token. Their type is
// the column's dtype, the same in every example.
struct Column {
  // list: any number of values of the example; a batch has them one list after the other.
  enum class Per : uint8_t { example, sequence, token, list };

  std::string name;  // "reference_logps", "advantages"
  Per per = Per::example;
  std::variant<std::vector<float>, std::vector<int64_t>> values;

  size_t size() const;
};

// The column of weights in the loss, per token and parallel to the labels; examples without it have weight 1.
inline constexpr const char* loss_weights = "weights";
// Columns of an example as a whole: whether its answer is good, 1 or 0; how much better a pair's chosen answer is.
inline constexpr const char *answer_is_good = "answer_is_good", *pair_margin = "margin";

// `tokens` and `labels` are parallel; labels[i] is the token to be predicted at i, or no_label. Sequences are
// concatenated: `lengths` adds up to tokens.size(). A plain row has one sequence, a packed row one per document (they
// do not attend to each other), a preference pair two (chosen, rejected).
struct Example {
  std::vector<int32_t> tokens;
  std::vector<int32_t> labels;
  std::vector<int32_t> lengths;
  std::vector<Column> columns = {};  // at most one of a name; all examples of a dataset have the same

  int64_t labelled() const;
  // Appends a sequence. `learn[i]` says whether token i may be a label; empty: all may. The last token's label is
  // no_label, and the first token is never a label, because no token precedes it.
  void add_sequence(std::span<const int32_t> ids, std::span<const uint8_t> learn = {});
  // The same if a token's label is the token itself.
  void add_unshifted(std::span<const int32_t> ids, std::span<const uint8_t> learn = {});

  // For each token: the token itself if it is learned, else no_label. `shifted`: labels[i] is about the token after
  // token i, as add_sequence makes them. The first token of a sequence is never learned.
  std::vector<int32_t> unshifted_labels(bool shifted) const;

  // For each token its weight in the loss, where unshifted_labels has its label; 1 without weights.
  std::vector<float> unshifted_weights(bool shifted) const;

  // Adds the column, or replaces the one of its name. It must have as many numbers as it describes.
  void set(Column column);
  const Column* find(std::string_view name) const;  // nullptr: there is none
};

}  // namespace easydel::data
