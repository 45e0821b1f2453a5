// Log-probabilities of given tokens from rows of logits, and the gradient, each in one sweep over a row. A row has the
// same bits on every instruction set, with any other rows and on any number of threads.
#pragma once

#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"

namespace easydel::kernels {

// Results for rows of logits, each [rows].
struct LogProbabilities {
  float* logps = nullptr;    // logits[row, label] - lse
  float* lse = nullptr;      // log sum e^logit
  float* entropy = nullptr;  // of the whole distribution; may be null
  bool* correct = nullptr;   // whether the label is the first maximum of the logits; may be null
};

// From fp32 logits [rows, vocabulary]. A label outside the vocabulary is a Bug.
void log_probabilities(Executor& executor, Input logits, const int64_t* labels, int64_t rows, int64_t vocabulary,
                       const LogProbabilities& out);

// Derivatives of the objective by each row's results; null: zero.
struct LogProbabilityGradient {
  const float* lse = nullptr;         // [rows], from the forward
  const float* of_label = nullptr;    // [rows], by the label's log-probability
  const float* of_uniform = nullptr;  // [rows], by the mean of all log-probabilities
  const float* of_lse = nullptr;      // [rows], by lse itself
  float scale = 1;                    // multiplies the result: the inverse of a temperature
};

// dlogits [rows, vocabulary]; may be the logits themselves. The label's entry is included.
void log_probabilities_backward(Executor& executor, const LogProbabilityGradient& gradient, Input logits,
                                const int64_t* labels, int64_t rows, int64_t vocabulary, Output dlogits);

}  // namespace easydel::kernels
