// Log-probabilities of chosen tokens from rows of logits, and the gradient, each in one sweep over a row. A row has the
// same bits on every instruction set, in any company and on any number of threads.
#pragma once

#include "easydel/kernels/executor.h"
#include "easydel/kernels/number.h"

namespace easydel::kernels {

// What rows of logits tell, each [rows].
struct LogProbabilities {
  float* logps = nullptr;    // logits[row, label] - lse
  float* lse = nullptr;      // log sum e^logit
  float* entropy = nullptr;  // of the whole distribution; null: not wanted
  bool* correct = nullptr;   // whether the label is the first of the largest logits; null: not wanted
};

// Of fp32 logits [rows, vocabulary]. A label outside the vocabulary is a Bug.
void log_probabilities(Executor& executor, Input logits, const int64_t* labels, int64_t rows, int64_t vocabulary,
                       const LogProbabilities& out);

// What is minimized, differentiated by parts of each row's result; null: nothing flows there.
struct LogProbabilityGradient {
  const float* lse = nullptr;         // [rows], of the forward
  const float* of_label = nullptr;    // [rows], by the label's log-probability
  const float* of_uniform = nullptr;  // [rows], by the mean of all log-probabilities
  const float* of_lse = nullptr;      // [rows], by lse itself
  float scale = 1;                    // of the whole: the inverse of a temperature
};

// dlogits [rows, vocabulary]; it may be the logits themselves. The label's entry gets its share with the others.
void log_probabilities_backward(Executor& executor, const LogProbabilityGradient& gradient, Input logits,
                                const int64_t* labels, int64_t rows, int64_t vocabulary, Output dlogits);

}  // namespace easydel::kernels
