// Shared by the methods that learn from given answers: a prompt and its answers as an example, and what pairs report.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "easydel/train/method.h"
#include "easydel/train/sequence_logps.h"

namespace easydel::train {

// The chosen answers and the rejected ones: [pairs] each.
struct Halves {
  Tensor chosen, rejected;
};
// Of a tensor [2 * pairs] or [3 * pairs] in the order of flat_batch; a third answer is left out.
Halves halves(const Tensor& stacked, int64_t answers = 2);

// -(1 - smoothing) log sigmoid(x) - smoothing log sigmoid(-x): the loss of a preference that is wrong with this
// probability.
Tensor smoothed_preference(const Tensor& x, double smoothing);

// How long the parts of a row may be, in tokens.
struct AnswerLimits {
  std::optional<int64_t> prompt;      // its end is kept
  std::optional<int64_t> completion;  // its beginning is kept
  std::optional<int64_t> whole;       // of prompt and answer together
  bool keep_start = true;             // of the whole; else its end
};
AnswerLimits limits_of(const TrainerConfig& common, std::optional<int64_t> prompt, std::optional<int64_t> completion);

// Column of the sequences: the number of tokens of the answer, whether or not they can be predicted.
inline constexpr const char* answer_tokens = "answer_tokens";

// One sequence for each answer: the prompt and the answer, of which the answer is learned. No example if an answer has
// nothing that can be learned.
data::Prepared prepared_answers(std::vector<int32_t> prompt, std::span<std::vector<int32_t>* const> answers,
                                const AnswerLimits& limits);

// "NAME/chosen" and "NAME/rejected": means of [pairs].
void add_means(Loss& out, const char* name, const Halves& values);
// "rewards/chosen", "rewards/rejected", "rewards/accuracies" and "rewards/margins".
void add_reward_metrics(Loss& out, const Halves& rewards);
// "logits/chosen" and "logits/rejected": the mean logit over the answers' tokens. `scores` has mean_logit.
void add_logit_metrics(Loss& out, const SequenceScores& scores, int64_t answers = 2);
// "entropy" over all scored tokens, and "mean_token_accuracy" over those of the chosen answers.
void add_token_metrics(Loss& out, const SequenceScores& scores, int64_t answers = 2);

}  // namespace easydel::train
