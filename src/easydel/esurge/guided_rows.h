// Classifier-free guidance: a request whose answers are read after a negative prompt as well. What is drawn from are
// the scores after both prompts together (generation::guide), so each token waits for two rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace easydel::esurge {

class GuidedRows {
 public:
  GuidedRows(int64_t choices, double scale) : rows_(size_t(choices)), scale_(scale) {}

  // The model's scores of the next token of a choice, after its prompt or after the negative one. For different rows
  // from several threads.
  void add(int64_t choice, bool negative, std::span<const float> logits);
  bool has_all() const;
  // The scores after the prompt, as they were given.
  std::span<const float> after_prompt(int64_t choice) const { return rows_[size_t(choice)].after_prompt; }
  // Both together, with the bits of generation::Generator.
  std::vector<float> guided(int64_t choice) const;
  // The next tokens' rows are due.
  void clear();

 private:
  struct Rows {
    std::vector<float> after_prompt, after_negative;
  };

  std::vector<Rows> rows_;  // by choice
  const double scale_;
};

}  // namespace easydel::esurge
