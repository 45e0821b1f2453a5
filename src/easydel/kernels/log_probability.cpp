// Cuts log-probabilities into rows; pointwise_loops.h processes a row.
#include "easydel/kernels/log_probability.h"

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"

namespace easydel::kernels {

void log_probabilities(Executor& executor, Input logits, const int64_t* labels, int64_t rows, int64_t vocabulary,
                       const LogProbabilities& out) {
  for (int64_t r = 0; r < rows; ++r)
    check(labels[r] >= 0 && labels[r] < vocabulary, "log_probabilities: label ", labels[r], " of row ", r,
          " is outside the vocabulary of ", vocabulary);
  const Loops& isa = loops();
  executor.run(rows, [&](int64_t row) { isa.scores.log_probability(logits, labels[row], row, vocabulary, out); });
}

void log_probabilities_backward(Executor& executor, const LogProbabilityGradient& gradient, Input logits,
                                const int64_t* labels, int64_t rows, int64_t vocabulary, Output dlogits) {
  const Loops& isa = loops();
  executor.run(rows, [&](int64_t row) {
    isa.scores.log_probability_backward(gradient, logits, labels[row], row, vocabulary, dlogits);
  });
}

}  // namespace easydel::kernels
