#include "easydel/train/compute_loss.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "easydel/base/error.h"
#include "easydel/ops/token_scores.h"
#include "easydel/train/token_losses.h"

namespace easydel::train {
namespace {

// The label of each token: that of the next token, or (unshifted) its own. The last token has none.
Tensor labels_of_tokens(const Tensor& labels, const LossConfig& config) {
  if (!config.shift_tokens) return labels;
  const Tensor none = at::full_like(labels.slice(1, 0, 1), config.ignore_index);
  return at::cat({labels.slice(1, 1), none}, 1);
}

}  // namespace

ComputedLoss compute_loss(const models::Model& model, const LossInputs& inputs, const LossConfig& config,
                          const Forwarding& forwarding) {
  check_loss_config(config);
  const Tensor& tokens = inputs.tokens;
  if (!tokens.defined() || tokens.dim() != 2)
    refuse("compute_loss", "there are no tokens", "give tokens [batch, length]");
  const Tensor given = inputs.labels.defined() ? inputs.labels : tokens;
  const Tensor real = inputs.attention_mask.defined() ? inputs.attention_mask.ne(0) : at::ones_like(tokens, at::kBool);
  if (given.sizes() != tokens.sizes() || real.sizes() != tokens.sizes())
    refuse("compute_loss",
           easydel::str("tokens are ", tokens.sizes(), ", labels ", given.sizes(), ", the mask ", real.sizes()),
           "give all of them as [batch, length]");

  Batch batch;
  batch.tokens = tokens.masked_select(real);
  batch.cu_seqlens = {0};
  const Tensor counts = real.sum(1).to(at::kCPU);
  for (int64_t row = 0; row < tokens.size(0); ++row)
    batch.cu_seqlens.push_back(batch.cu_seqlens.back() + counts[row].item<int64_t>());
  ComputedLoss out;
  nn::Pass pass;
  out.outputs = forwarding.run(model, batch, pass);

  const nn::Head& head = model.head();
  Tensor labels = labels_of_tokens(given, config);
  labels = at::where(real, labels, at::full_like(labels, config.ignore_index));
  const Tensor learned =
      labels.ne(config.ignore_index).logical_and(labels >= 0).logical_and(labels < head.vocabulary());
  const Tensor rows = learned.masked_select(real).nonzero().squeeze(1);
  pass.stream().head_tokens = rows.to(at::kCPU);
  const nn::Scores scores = head.score(out.outputs.hidden.index_select(0, rows), labels.masked_select(learned), pass,
                                       {.correct = true,
                                        .uniform = config.label_smoothing > 0,
                                        .log_normalizer = config.z_loss > 0 && !config.reduction,
                                        .chunk = config.chunk_token_size.value_or(0)});
  const auto placed = [&](const Tensor& t) {
    return at::zeros(labels.sizes(), scores.logps.options().requires_grad(false))
        .masked_scatter(learned, t.to(at::kFloat));
  };
  TokenLosses losses;
  losses.plain = placed(
      ops::smoothed_loss(scores.logps, scores.uniform, head.vocabulary(), config.label_smoothing, ops::Smoothing::t5x));
  losses.z = scores.log_normalizer.defined() ? placed(config.z_loss * scores.log_normalizer.square())
                                             : at::zeros_like(losses.plain);
  losses.correct = placed(scores.correct);
  Targets targets{.labels = labels, .num_items_in_batch = inputs.num_items_in_batch};
  if (inputs.attention_mask.defined()) targets.attention_mask = inputs.attention_mask;
  if (config.shift_tokens) {
    // The last position of each row has no label; the mask is that of the labels' own tokens.
    const auto cut = [](Tensor& t) { t = t.slice(1, 0, t.size(1) - 1); };
    for (Tensor* t : {&losses.plain, &losses.z, &losses.correct, &targets.labels}) cut(*t);
    if (targets.attention_mask.defined()) targets.attention_mask = targets.attention_mask.slice(1, 1);
  }
  out.metrics = reduced(losses, targets, config);
  return out;
}

}  // namespace easydel::train
