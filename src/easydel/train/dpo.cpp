// trainer_type: dpo. Direct preference optimisation (arXiv:2305.18290) with the losses and divergences of
// trl/trainer/dpo_trainer.py: trains the model to prefer the chosen answer by a wider margin than a frozen reference
// does.
#include "easydel/train/dpo_config.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/data/encode.h"
#include "easydel/train/pairs.h"
#include "easydel/train/reference.h"
#include "easydel/train/running_mean.h"

namespace easydel::train {
namespace {

// The inputs of the losses; all [pairs].
struct Scores {
  Halves logps, ratios;  // of the policy; relative to the reference
  Halves scores;         // the ratios after the divergence
  Halves lengths;        // tokens of the answers; 1 if the log-probabilities are means already
  Tensor chosen_mean;    // scalar: mean log-probability of the chosen answers' tokens
  double shift = 0;      // of bco_pair
  Tensor delta() const { return scores.chosen - scores.rejected; }
};

Tensor through(const Tensor& ratio, Divergence divergence, double alpha) {
  switch (divergence) {
    case Divergence::reverse_kl:
      return ratio;
    case Divergence::forward_kl:
      return 1 - (-ratio).exp();
    case Divergence::js_divergence:
      return std::log(2.0) + at::log_sigmoid(ratio);
    case Divergence::alpha_divergence:
      if (std::abs(alpha - 1) < 1e-6) return ratio;
      return ((alpha - 1) * ratio).clamp_max(80).exp().sub(1) / (alpha - 1);
  }
  return ratio;
}

Tensor sorted(const Tensor& values) { return std::get<0>(values.sort(0)); }

// The loss of each pair, [pairs]; that of the whole micro-batch if the loss is defined for it alone.
Tensor pair_loss(DpoLoss loss, const Scores& s, const DpoConfig& config, const Forwarding& how) {
  const double beta = config.beta, smoothing = config.label_smoothing;
  const auto [chosen, rejected] = s.ratios;
  const auto normalized = [&] { return s.scores.chosen / s.lengths.chosen - s.scores.rejected / s.lengths.rejected; };
  switch (loss) {
    case DpoLoss::sigmoid:
      return smoothed_preference(beta * s.delta(), config.conservative ? smoothing : 0);
    case DpoLoss::sigmoid_norm:
      return -at::log_sigmoid(beta * normalized());
    case DpoLoss::hinge:
      return at::relu(1 - beta * s.delta());
    case DpoLoss::ipo:
      return (normalized() - 1 / (2 * beta)).square();
    case DpoLoss::exo_pair: {
      const Tensor x = beta * s.delta();
      return x.sigmoid() * (at::log_sigmoid(x) - std::log1p(-smoothing)) +
             (-x).sigmoid() * (at::log_sigmoid(-x) - std::log(smoothing));
    }
    case DpoLoss::nca_pair:
      return -at::log_sigmoid(beta * chosen) - 0.5 * at::log_sigmoid(-beta * chosen) -
             0.5 * at::log_sigmoid(-beta * rejected);
    case DpoLoss::robust: {
      const Tensor x = beta * s.delta();
      return (-(1 - smoothing) * at::log_sigmoid(x) + smoothing * at::log_sigmoid(-x)) / (1 - 2 * smoothing);
    }
    case DpoLoss::bco_pair:
      if (config.form == DpoForm::trl_1) return -at::log_sigmoid(beta * chosen) - at::log_sigmoid(-beta * rejected);
      return -at::log_sigmoid(beta * chosen - s.shift) - at::log_sigmoid(-(beta * rejected - s.shift));
    case DpoLoss::sppo_hard:
      return (chosen - 0.5 / beta).square() + (rejected + 0.5 / beta).square();
    case DpoLoss::aot: {
      const Tensor reference = (s.logps.chosen - chosen) - (s.logps.rejected - rejected);
      return smoothed_preference(
          beta * (sorted(how.gather(s.logps.chosen - s.logps.rejected)) - sorted(how.gather(reference))), smoothing);
    }
    case DpoLoss::aot_unpaired:
      return smoothed_preference(beta * (sorted(how.gather(chosen)) - sorted(how.gather(rejected))), smoothing);
    case DpoLoss::apo_zero:
      return 1 - (beta * chosen).sigmoid() + (beta * rejected).sigmoid();
    case DpoLoss::apo_down:
      return (beta * chosen).sigmoid() + 1 - (beta * (chosen - rejected)).sigmoid();
    case DpoLoss::discopop: {
      const Tensor x = beta * s.delta(), share = (x / config.discopop_tau).sigmoid();
      return -at::log_sigmoid(x) * (1 - share) + (-x).exp() * share;
    }
    case DpoLoss::sft:
      return -s.chosen_mean;
  }
  throw Bug("a loss without a formula");
}

class Dpo final : public Method {
 public:
  explicit Dpo(const Setting& setting) : config_(setting.trainer.own_as<DpoConfig>()), common_(setting.trainer.common) {
    if (!config_.reference_free) {
      std::optional<Reference::Following> following;
      if (config_.sync_ref_model) following = {config_.ref_model_mixup_alpha, config_.ref_model_sync_steps};
      reference_ = Reference(setting, following);
    }
    if (setting.tokenizer) encoder_.emplace(setting.tokenizer, data::EncoderOptions{});
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    check(encoder_.has_value(), "rows without a tokenizer");
    data::EncodedPair pair = encoder_->encode_pair(row);
    std::vector<int32_t>* const answers[] = {&pair.chosen, &pair.rejected};
    data::Prepared out = prepared_answers(std::move(pair.prompt), answers,
                                          limits_of(common_, config_.max_prompt_length, config_.max_completion_length));
    if (pair.merges) out.mistakes.add(data::RowMistake::merged_prompt);
    return out;
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    batch.weight = double(batch.examples);
    return batch;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    Forwarding how = forwarding;
    if (config_.disable_dropout) how.training = false;
    const SequenceScores policy = score_sequences(model, batch, how,
                                                  {.entropy = how.metrics,
                                                   .correct = how.metrics,
                                                   .mean_logit = how.metrics,
                                                   .square_sum = config_.use_weighting,
                                                   .chunk = common_.loss().chunk_token_size.value_or(0)});
    const Tensor reference = logps_of_reference(policy, batch, how);
    const Tensor logps = answer_logps(policy, batch, policy.logps, false);

    Scores s;
    s.logps = halves(logps);
    s.ratios = halves(logps - reference);
    s.scores = {through(s.ratios.chosen, config_.f_divergence_type, config_.f_alpha_divergence_coef),
                through(s.ratios.rejected, config_.f_divergence_type, config_.f_alpha_divergence_coef)};
    const Tensor lengths = batch.column(answer_tokens).to(logps.device()).clamp_min(1);
    s.lengths = halves(averages() ? at::ones_like(lengths) : lengths);
    const Tensor plain = halves(policy.sums(policy.logps)).chosen;
    s.chosen_mean = how.mean(plain.sum(), halves(policy.lengths).chosen.sum(), batch.weight);
    s.shift = shift_of(s, forwarding);

    const Tensor weights = weights_of(policy);
    // Of a loss that is one number for the micro-batch, the mean weight of all its pairs.
    const double mean_weight =
        weights.defined() ? how.total(weights.sum().item<double>()) / std::max(how.total(double(weights.numel())), 1.0)
                          : 1;
    const auto weighted_mean = [&](const Tensor& losses) {
      if (!weights.defined()) return losses.mean();
      return losses.dim() == 0 ? losses * mean_weight : (losses * weights).mean();
    };
    Loss out;
    for (size_t i = 0; i < config_.loss_type.size(); ++i) {
      const double weight = config_.loss_weights.empty() ? 1.0 : config_.loss_weights[i];
      const Tensor one = weighted_mean(pair_loss(config_.loss_type[i], s, config_, how)) * (weight * batch.weight);
      out.sum = out.sum.defined() ? out.sum + one : one;
    }
    if (config_.rpo_alpha) {
      const Tensor likelihood = -*config_.rpo_alpha * s.chosen_mean;
      const bool in_weights = config_.form == DpoForm::trl_0_24;
      out.sum = out.sum + (in_weights ? weighted_mean(likelihood) : likelihood) * batch.weight;
    }
    if (how.metrics) add_metrics(out, s, policy);
    return out;
  }

  void examine(const Examination& of) override {
    if (!config_.precompute_ref_log_probs || !reference_.exists()) return;
    const auto compute = [this](const Batch& batch, const Forwarding& how) {
      const SequenceScores scores = reference_.score(batch, how);
      return answer_logps(scores, batch, scores.logps, true);
    };
    std::string kind = averages() ? "means" : "sums";
    if (config_.ld_alpha && config_.form == DpoForm::trl_1) kind += str(", ld_alpha ", *config_.ld_alpha);
    reference_.precompute(of, {reference_logps, kind, [this](auto examples) { return collate(examples); }, compute});
  }

  void begin_update(const models::Model&, std::span<const UpdatePart>) override { rewards_.begin_update(); }
  void updated(const models::Model& model, int64_t step) override {
    reference_.follow(model, step);
    rewards_.end_update();
  }

  MethodState state() const override {
    MethodState out;
    reference_.add_state(out);
    if (shifts()) out.document = rewards_.document();
    return out;
  }
  void restore(const SavedState& saved) override {
    reference_.restore(saved);
    if (shifts()) rewards_.restore(saved.document());
  }

 private:
  bool uses(DpoLoss loss) const { return std::ranges::find(config_.loss_type, loss) != config_.loss_type.end(); }
  // TRL 0.24 averages the log-probabilities of all losses if ipo is among them.
  bool averages() const { return config_.form == DpoForm::trl_0_24 && uses(DpoLoss::ipo); }
  bool shifts() const { return config_.form == DpoForm::trl_0_24 && uses(DpoLoss::bco_pair); }

  // The running mean of the micro-batches' mean rewards, this one's included; evaluations do not move it.
  double shift_of(const Scores& s, const Forwarding& how) const {
    if (!shifts()) return 0;
    const Tensor rewards = config_.beta * at::cat({s.ratios.chosen, s.ratios.rejected}).detach();
    const double count = how.total(double(rewards.numel()));
    const double mean = how.total(rewards.sum().item<double>()) / std::max(count, 1.0);
    if (how.training) rewards_.add(mean, 1);
    return rewards_.mean(how.training);
  }

  // WPO: each pair's weight, [pairs], without a gradient; undefined: all the same.
  Tensor weights_of(const SequenceScores& policy) const {
    if (!config_.use_weighting) return {};
    const c10::AutoGradMode no_grad(false);
    const Tensor means = policy.sums(policy.logps.detach() - policy.details.square_sum) / policy.lengths.clamp_min(1);
    const Halves parts = halves(means);
    const Tensor weights = (parts.chosen + parts.rejected).exp();
    return config_.form == DpoForm::trl_0_24 ? weights.clamp_max(1) : weights;
  }

  // [2 * pairs], the chosen half first. With ld_alpha, tokens of an answer beyond the length of the shorter one are
  // weighted by it.
  Tensor answer_logps(const SequenceScores& scores, const Batch& batch, const Tensor& per_token, bool reference) const {
    const bool old = config_.form == DpoForm::trl_0_24;
    if (!config_.ld_alpha || (old && reference)) {
      // TRL 0.24's divergences are exponentials of differences of long sums, which fp32 would round too far apart.
      const Tensor sums = scores.sums(old ? per_token.to(at::kDouble) : per_token);
      return averages() ? sums / scores.lengths : sums;
    }
    const auto [chosen, rejected] = halves(scores.lengths);
    const Tensor shared = at::minimum(chosen, rejected);
    const Tensor of_token = at::cat({shared, shared}).index_select(0, scores.sequence);
    if (old) {
      // TRL 0.24 counts from the beginning of the sequence, so answers lose what lies beyond their own length.
      const Tensor place = scores.places(batch);
      const Tensor front = place.lt(of_token).to(at::kFloat);
      const Tensor within = place.lt(scores.lengths.index_select(0, scores.sequence)).to(at::kFloat);
      return scores.sums(per_token * (front + *config_.ld_alpha * (1 - front) * within));
    }
    const Tensor ends = scores.lengths.cumsum(0);
    const Tensor place =
        at::ones_like(scores.sequence).cumsum(0) - (ends - scores.lengths).index_select(0, scores.sequence);
    return scores.sums(per_token * (1 - (1 - *config_.ld_alpha) * place.gt(of_token).to(at::kFloat)));
  }

  Tensor logps_of_reference(const SequenceScores& policy, const Batch& batch, const Forwarding& how) const {
    const c10::AutoGradMode no_grad(false);
    if (config_.reference_free) return at::zeros_like(policy.lengths);
    if (batch.has(reference_logps)) return batch.column(reference_logps).to(policy.logps.device());
    const SequenceScores scores = reference_.score(batch, how);
    return answer_logps(scores, batch, scores.logps, true);
  }

  void add_metrics(Loss& out, const Scores& s, const SequenceScores& policy) const {
    double weight = config_.beta;
    if (config_.form == DpoForm::trl_0_24) {  // which adds up the rewards of its losses
      double sum = config_.loss_weights.empty() ? double(config_.loss_type.size()) : 0;
      for (const double one : config_.loss_weights) sum += one;
      weight *= sum;
    }
    // TRL 0.24 reports rewards relative to a reference even if the loss is free of it.
    if (config_.form == DpoForm::trl_1 || !config_.reference_free)
      add_reward_metrics(out, {weight * s.ratios.chosen.detach(), weight * s.ratios.rejected.detach()});
    add_means(out, "logps", s.logps);
    add_logit_metrics(out, policy);
    add_token_metrics(out, policy);
    if (config_.rpo_alpha || (config_.form == DpoForm::trl_0_24 && uses(DpoLoss::sft)))
      out.metrics.push_back({"nll_loss", -halves(policy.sums(policy.logps)).chosen.sum().item<double>(),
                             halves(policy.lengths).chosen.sum().item<double>()});
  }

  DpoConfig config_;
  TrainerConfig common_;
  Reference reference_;
  mutable RunningMean rewards_;  // of bco_pair
  std::optional<data::Encoder> encoder_;
};

}  // namespace

MethodEntry dpo() {
  return {"dpo", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Dpo>(setting); }};
}

}  // namespace easydel::train
