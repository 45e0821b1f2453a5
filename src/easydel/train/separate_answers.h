// Pairs as TRL's trainers without a reference prepare them (trl/experimental/orpo, cpo): texts are made first, of
// conversations too, and the answer is what follows the prompt's own tokens.
#pragma once

#include "easydel/data/encode.h"
#include "easydel/train/pair_keys_config.h"
#include "easydel/train/pairs.h"

namespace easydel::train {

// Column of the tokens: 1 where the label is a token of the answer, not of the prompt.
inline constexpr const char* in_answer = "in_answer";

AnswerLimits pair_limits(const TrainerConfig& common, const PairKeys& keys);

// Chosen and rejected, each after its prompt and with an end token. Answers are cut to what the prompt leaves.
// `chosen_prompts`: the chosen answer's prompt is learned, too.
data::Prepared prepared_separately(const data::Encoder& encoder, const data::TypedRow& row, const AnswerLimits& limits,
                                   bool chosen_prompts);

}  // namespace easydel::train
