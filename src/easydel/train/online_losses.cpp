#include "easydel/train/online_losses.h"

#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace easydel::train {

OnlineMargins online_margins(const CompletionLogps& first, const CompletionLogps& second, const Tensor& first_wins) {
  return {at::where(first_wins, first.ratio(), second.ratio()), at::where(first_wins, second.ratio(), first.ratio())};
}

Tensor online_loss(OnlineLoss loss, double beta, const OnlineMargins& margins) {
  const Tensor margin = margins.chosen - margins.rejected;
  return loss == OnlineLoss::ipo ? (margin - 1 / (2 * beta)).square() : -at::log_sigmoid(beta * margin);
}

Tensor exploration_loss(double alpha, const CompletionLogps& of_reference) { return alpha * of_reference.policy; }

NashLoss nash_loss(double beta, const CompletionLogps& tokens, const Tensor& sequence, const Tensor& wins) {
  const auto summed = [&](const Tensor& of_tokens) {
    return at::zeros({wins.size(0)}, of_tokens.options()).index_add(0, sequence, of_tokens);
  };
  const Tensor ratio = tokens.ratio().detach();
  NashLoss out;
  out.score = (wins - 0.5) * summed(tokens.policy);
  out.divergence = summed(ratio);
  out.loss = beta * summed(ratio * tokens.policy) - out.score;
  return out;
}

}  // namespace easydel::train
