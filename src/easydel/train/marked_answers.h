// Shared by the methods that learn from answers marked good or bad, without pairs: kto and bco.
#pragma once

#include "easydel/train/pairs.h"

namespace easydel::train {

using data::answer_is_good;
// Column of an example: how many of its tokens are the prompt.
inline constexpr const char* prompt_tokens = "prompt_tokens";

// What kto and bco report of their answers; all [answers] but `scores`.
struct MarkedAnswers {
  Tensor good;     // bool
  Tensor rewards;  // without a gradient
  Tensor logps;
};
// "rewards/...", "logps/..." of the good answers (chosen) and the bad ones (rejected), and "rewards/margins" if there
// are both. `over`: how micro-batches are averaged.
void add_marked_metrics(Loss& out, const MarkedAnswers& answers, const Forwarding& how, Metric::Over over);

// A row with one marked answer, or with a pair: a good answer and a bad one. `prepare` makes the example of one.
data::Prepared prepared_marks(const data::TypedRow& row,
                              const std::function<data::Prepared(const data::TypedRow&)>& prepare);

}  // namespace easydel::train
