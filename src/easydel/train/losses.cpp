#include "easydel/train/losses.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/ops/token_scores.h"
#include "easydel/train/token_losses.h"

namespace easydel::train {
namespace {

constexpr double min_weight = 1e-8;

std::string sizes_text(const Tensor& t) {
  std::string out;
  for (const int64_t size : t.sizes()) out += str(out.empty() ? "[" : ", ", size);
  return out.empty() ? "[]" : out + "]";
}

TokenLosses losses_of(const Tensor& logits, const Tensor& labels, const LossConfig& config) {
  const int64_t vocabulary = logits.size(-1);
  const Tensor inside = (labels >= 0).logical_and(labels < vocabulary);
  ops::TokenScoreRequest request;
  request.uniform = config.label_smoothing > 0;
  request.token_chunk = config.chunk_token_size.value_or(0);
  request.vocabulary_chunk = config.chunk_vocab_size ? *config.chunk_vocab_size : config.chunk_block_size.value_or(0);
  const Tensor safe = at::where(inside, labels, at::zeros_like(labels));
  const ops::TokenScores scores = ops::token_scores(logits.reshape({-1, vocabulary}), safe.reshape({-1}), request);
  const auto shaped = [&](const Tensor& t) { return t.view(labels.sizes()) * inside.to(at::kFloat); };
  TokenLosses out;
  out.plain =
      shaped(ops::smoothed_loss(scores.logps, scores.uniform, vocabulary, config.label_smoothing, ops::Smoothing::t5x));
  out.z = config.z_loss > 0 && !config.reduction ? shaped(config.z_loss * scores.log_normalizer.square())
                                                 : at::zeros_like(out.plain);
  out.correct = shaped(scores.correct.to(at::kFloat));
  return out;
}

// The weights scaled so that each row (or each document of a packed row) sums to 1.
Tensor averaged(const Tensor& weights, const Tensor& segments) {
  if (!segments.defined()) return weights / weights.sum(1, true).clamp_min(min_weight);
  const int64_t count = segments.numel() ? segments.max().item<int64_t>() + 1 : 1;
  const Tensor index = segments.to(at::kLong);
  const Tensor sums = at::zeros({weights.size(0), count}, weights.options()).scatter_add(1, index, weights);
  return weights / sums.gather(1, index).clamp_min(min_weight);
}

struct Divided {
  Tensor weights, divisor;
};

Divided divided(const LossConfig& config, const Targets& targets, const Tensor& mask, const Tensor& valid) {
  const Tensor one = at::ones_like(mask);
  if (!config.loss_normalizing_factor) return {targets.weights.defined() ? mask : one, one.new_ones({})};
  if (const auto* number = std::get_if<double>(&*config.loss_normalizing_factor); number && *number != 0)
    return {targets.weights.defined() ? mask : one, one.new_full({}, *number)};
  const auto* named = std::get_if<Normalizer>(&*config.loss_normalizing_factor);
  switch (named ? *named : Normalizer::no_weight) {
    case Normalizer::real_target_tokens:
      return {mask, mask.sum()};
    case Normalizer::no_weight:
      return {mask * valid, (mask * valid).sum()};
    case Normalizer::total_target_tokens:
      return {mask, one.sum()};
    case Normalizer::average_per_sequence: {
      const Tensor weights = averaged(mask, targets.segments);
      return {weights, weights.sum()};
    }
  }
  throw Bug("a normalizer without a rule");
}

}  // namespace

void check_loss_config(const LossConfig& config) {
  if (!(config.label_smoothing >= 0 && config.label_smoothing < 1))
    refuse("loss_config.label_smoothing", str(config.label_smoothing, " is out of range"),
           "give a number from 0, below 1");
  if (!(config.z_loss >= 0))
    refuse("loss_config.z_loss", str(config.z_loss, " is negative"), "give a number of at least 0");
  for (const auto& [name, size] :
       {std::pair{"chunk_vocab_size", config.chunk_vocab_size}, std::pair{"chunk_token_size", config.chunk_token_size},
        std::pair{"chunk_block_size", config.chunk_block_size}})
    if (size && *size < 1)
      refuse(str("loss_config.", name), str(*size, " is not a size"), "give a number of at least 1, or null");
}

LossMetrics reduced(const TokenLosses& tokens, const Targets& targets, const LossConfig& config) {
  const Tensor& labels = targets.labels;
  const Tensor valid = labels.ne(config.ignore_index).to(at::kFloat);
  const Tensor given = targets.weights.defined() ? targets.weights : targets.attention_mask;
  const Tensor mask = given.defined() ? given.to(at::kFloat) : valid;
  if (mask.sizes() != labels.sizes())
    refuse("loss", str("labels are ", sizes_text(labels), ", their mask ", sizes_text(mask)),
           "give one number for each label");
  const auto share = [](const Tensor& sum, const Tensor& weights) { return sum / weights.sum().clamp_min(min_weight); };
  if (config.reduction) {
    const Tensor weights = mask * valid, weighted = tokens.plain * weights, none = weights.new_zeros({});
    if (*config.reduction == Reduction::none) return {weighted, none, weights, tokens.correct * weights};
    const Tensor sum = weighted.sum(), accuracy = share((tokens.correct * weights).sum(), weights);
    return {*config.reduction == Reduction::sum ? sum : share(sum, weights), none, weights.sum(), accuracy};
  }
  const auto [weights, divisor] = divided(config, targets, mask, valid);
  const Tensor learned = weights * valid;
  LossMetrics out;
  out.loss = ((tokens.plain + tokens.z) * learned).sum() / divisor;
  out.z_loss = (tokens.z * learned).sum() / divisor;
  out.weight_sum = learned.sum();
  out.accuracy = share((tokens.correct * learned).sum(), learned);
  if (targets.num_items_in_batch)
    out.loss = out.loss / *targets.num_items_in_batch;
  else if (config.divide_weight_sum)
    out.loss = out.loss / out.weight_sum;
  return out;
}

namespace {

// logits [..., classes]; labels have the leading shape.
LossMetrics cross_entropy(const Tensor& logits, const Targets& targets, const LossConfig& config) {
  return reduced(losses_of(logits, targets.labels, config), targets, config);
}

void check_tokens(const char* where, const Tensor& logits, const Tensor& labels) {
  if (!logits.defined() || !labels.defined()) refuse(where, "logits or labels are missing", "give both");
  if (logits.dim() != 3 || labels.dim() != 2 || logits.size(0) != labels.size(0) || logits.size(1) != labels.size(1))
    refuse(where, str("logits are ", sizes_text(logits), ", labels ", sizes_text(labels)),
           "give logits [batch, length, classes] and labels [batch, length]");
}

enum class Problem : uint8_t { regression, single_label, multi_label };

Problem problem_of(const Tensor& logits, const Tensor& labels, const LossConfig& config) {
  if (const auto& named = config.problem_type ? config.problem_type : config.classification_problem_type) {
    if (*named == "regression") return Problem::regression;
    if (*named == "single_label_classification") return Problem::single_label;
    if (*named == "multi_label_classification") return Problem::multi_label;
    refuse("loss_config.problem_type", "there is no problem '" + *named + "'",
           "known: regression, single_label_classification, multi_label_classification");
  }
  const auto classes = config.num_labels ? config.num_labels : config.num_classification_labels;
  if (classes.value_or(logits.size(1)) == 1) return Problem::regression;
  return at::isIntegralType(labels.scalar_type(), false) ? Problem::single_label : Problem::multi_label;
}

}  // namespace

LossMetrics causal_lm_loss(const Tensor& logits, const Targets& targets, const LossConfig& config) {
  check_loss_config(config);
  check_tokens("causal_lm_loss", logits, targets.labels);
  if (!config.shift_tokens) return cross_entropy(logits, targets, config);
  Targets next = targets;
  next.labels = targets.labels.slice(1, 1);
  if (targets.attention_mask.defined()) next.attention_mask = targets.attention_mask.slice(1, 1);
  return cross_entropy(logits.slice(1, 0, logits.size(1) - 1), next, config);
}

LossMetrics token_classification_loss(const Tensor& logits, const Targets& targets, const LossConfig& config) {
  check_loss_config(config);
  check_tokens("token_classification_loss", logits, targets.labels);
  return cross_entropy(logits, targets, config);
}

LossMetrics sequence_classification_loss(const Tensor& logits, const Tensor& labels, const LossConfig& config) {
  check_loss_config(config);
  const char* const where = "sequence_classification_loss";
  if (!logits.defined() || !labels.defined()) refuse(where, "logits or labels are missing", "give both");
  const auto mismatch = [&](const char* hint) {
    refuse(where, str("logits are ", sizes_text(logits), ", labels ", sizes_text(labels)), hint);
  };
  if (logits.dim() != 2 || labels.dim() < 1 || labels.size(0) != logits.size(0))
    mismatch("give logits [batch, classes] and labels of as many rows");
  const Problem problem = problem_of(logits, labels, config);
  if (problem == Problem::single_label) {
    if (labels.dim() != 1 || !at::isIntegralType(labels.scalar_type(), false))
      mismatch("give the number of one class for each row");
    return cross_entropy(logits, {.labels = labels.to(at::kLong)}, config);
  }
  const Tensor x = logits.to(at::kFloat), y = labels.to(at::kFloat);
  LossMetrics out;
  if (problem == Problem::regression) {
    const bool one = logits.size(1) == 1 && y.dim() == 1;
    if (!one && y.sizes() != x.sizes()) mismatch("a regression needs a number for each logit");
    out.loss = at::mse_loss(one ? x.squeeze(1) : x, y);
  } else {
    if (y.sizes() != x.sizes()) mismatch("several classes at once need 0 or 1 for each of them");
    const Tensor smoothed = y * (1 - config.label_smoothing) + config.label_smoothing / 2;
    out.loss = at::binary_cross_entropy_with_logits(x, smoothed);
  }
  return out;
}

LossMetrics question_answering_loss(const Tensor& start_logits, const Tensor& end_logits, const Tensor& start_positions,
                                    const Tensor& end_positions, const LossConfig& config) {
  check_loss_config(config);
  const char* const where = "question_answering_loss";
  const auto half = [&](const Tensor& logits, const Tensor& positions) {
    if (!logits.defined() || !positions.defined())
      refuse(where, "logits or positions are missing", "give those of start and end");
    if (logits.dim() != 2 || positions.dim() != 1 || positions.size(0) != logits.size(0))
      refuse(where, str("logits are ", sizes_text(logits), ", positions ", sizes_text(positions)),
             "give logits [batch, length] and positions [batch]");
    LossConfig own = config;
    own.ignore_index = logits.size(1);
    return cross_entropy(logits, {.labels = positions.to(at::kLong).clamp(0, logits.size(1))}, own);
  };
  const LossMetrics start = half(start_logits, start_positions), end = half(end_logits, end_positions);
  const auto mean = [](const Tensor& a, const Tensor& b) { return (a + b) / 2; };
  return {mean(start.loss, end.loss), mean(start.z_loss, end.z_loss), mean(start.weight_sum, end.weight_sum),
          mean(start.accuracy, end.accuracy)};
}

}  // namespace easydel::train
