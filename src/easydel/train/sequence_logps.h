// Shared by the preference methods: log-probabilities of whole answers.
#pragma once

#include <span>
#include <vector>

#include "easydel/train/method.h"

namespace easydel::train {

struct SequenceScores {
  Tensor logps;        // fp32 [labelled tokens], differentiable where gradients are on
  Tensor sequence;     // int64 [labelled tokens]: which sequence of the batch
  Tensor lengths;      // fp32 [sequences]: labelled tokens of each
  nn::Scores details;  // of the labelled tokens, as requested

  // Sum over each sequence: fp32 [sequences].
  Tensor sums(const Tensor& per_token) const;
  // Of each labelled token, the place in its sequence of the token that predicts it: int64 [labelled tokens].
  Tensor places(const Batch& batch) const;
};

// A prompt with a completion whose tokens are learned.
data::Example learned_example(std::span<const int32_t> prompt, std::span<const int32_t> completion,
                              std::span<const uint8_t> inserted = {});

// A list: the tokens among which each learned token is scored (ops::ScoreRequest::kept).
inline constexpr const char* kept_tokens_column = "kept_tokens";
// kept_tokens_column of an example of a prompt and a completion, from the tokens that each of the completion was drawn
// from.
data::Column kept_tokens(const data::Example& example, size_t prompt, const std::vector<std::vector<int32_t>>& kept);

// Of a batch with kept_tokens_column, among those tokens alone.
SequenceScores score_sequences(const models::Model& model, const Batch& batch, const Forwarding& forwarding,
                               nn::ScoreOptions options);

}  // namespace easydel::train
