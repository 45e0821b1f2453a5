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
#include "easydel/models/adapter.h"
#include "easydel/train/sequence_logps.h"

namespace easydel::train {
namespace {

// Columns of a pair's sequences: the number of tokens of its answers and, if precomputed, their log-probabilities under
// the reference.
constexpr const char *answer_tokens = "answer_tokens", *reference_logps = "reference_logps";

struct Pair {
  Tensor chosen, rejected;  // [pairs]
};
Pair halves(const Tensor& stacked) {
  const auto parts = stacked.chunk(2);
  return {parts[0], parts[1]};
}

// The inputs of the losses; all [pairs].
struct Scores {
  Pair logps, ratios;  // of the policy; relative to the reference
  Pair scores;         // the ratios after the divergence
  Pair lengths;        // tokens of the answers
  Tensor chosen_mean;  // scalar: mean log-probability of the chosen answers' tokens
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

Tensor smoothed(const Tensor& logits, double smoothing) {
  return -(1 - smoothing) * at::log_sigmoid(logits) - smoothing * at::log_sigmoid(-logits);
}

Tensor sorted(const Tensor& values) { return std::get<0>(values.sort(0)); }

// The loss of each pair, [pairs] (a scalar if the loss is defined for the whole batch).
Tensor pair_loss(DpoLoss loss, const Scores& s, const DpoConfig& config) {
  const double beta = config.beta, smoothing = config.label_smoothing;
  const auto [chosen, rejected] = s.ratios;
  const auto normalized = [&] { return s.scores.chosen / s.lengths.chosen - s.scores.rejected / s.lengths.rejected; };
  switch (loss) {
    case DpoLoss::sigmoid:
      return smoothed(beta * s.delta(), config.conservative ? smoothing : 0);
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
      return -at::log_sigmoid(beta * chosen) - at::log_sigmoid(-beta * rejected);
    case DpoLoss::sppo_hard:
      return (chosen - 0.5 / beta).square() + (rejected + 0.5 / beta).square();
    case DpoLoss::aot: {
      const Tensor reference = (s.logps.chosen - chosen) - (s.logps.rejected - rejected);
      return smoothed(beta * (sorted(s.logps.chosen - s.logps.rejected) - sorted(reference)), smoothing);
    }
    case DpoLoss::aot_unpaired:
      return smoothed(beta * (sorted(chosen) - sorted(rejected)), smoothing);
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
  explicit Dpo(const Setting& setting)
      : config_(setting.trainer.own_as<DpoConfig>()),
        common_(setting.trainer.common),
        reference_(setting.side.reference.model) {
    if (config_.sync_ref_model && setting.model && !setting.model->adapters().empty())
      refuse("trainer.sync_ref_model", "a reference that follows the model is not built yet for adapters",
             "leave it out: the reference is the model without its adapter");
    if (!reference_ && !config_.reference_free && setting.model) reference_ = models::copy_model(*setting.model);
    if (setting.tokenizer) encoder_.emplace(setting.tokenizer, data::EncoderOptions{});
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    check(encoder_.has_value(), "rows without a tokenizer");
    data::EncodedPair pair = encoder_->encode_pair(row);
    data::Prepared out;
    const auto keep = [&](std::vector<int32_t>& ids, std::optional<int64_t> most, bool end) {
      if (!most || int64_t(ids.size()) <= *most) return;
      const auto cut = static_cast<std::ptrdiff_t>(ids.size()) - *most;
      out.cut_tokens += cut;
      ids.erase(end ? ids.begin() : ids.end() - cut, end ? ids.begin() + cut : ids.end());
    };
    keep(pair.prompt, config_.max_prompt_length, true);
    keep(pair.chosen, config_.max_completion_length, false);
    keep(pair.rejected, config_.max_completion_length, false);

    data::Example example;
    std::vector<float> answers;
    bool learnable = true;
    for (const auto* answer : {&pair.chosen, &pair.rejected}) {
      std::vector<int32_t> ids = pair.prompt;
      ids.insert(ids.end(), answer->begin(), answer->end());
      std::vector<uint8_t> learn(ids.size(), 1);
      std::fill_n(learn.begin(), pair.prompt.size(), uint8_t{0});
      out.cut_tokens += truncate(ids, learn);
      const auto before = example.labelled();
      example.add_sequence(ids, learn);
      answers.push_back(float(std::count(learn.begin(), learn.end(), 1)));
      learnable &= example.labelled() > before;
    }
    example.set({answer_tokens, data::Column::Per::sequence, std::move(answers)});
    if (learnable) out.example = std::move(example);
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
                                                   .chunk = common_.loss().chunk_token_size.value_or(0)});
    const Tensor reference = logps_of_reference(policy, batch, how);
    const Tensor logps = answer_logps(policy, policy.logps);

    Scores s;
    s.logps = halves(logps);
    s.ratios = halves(logps - reference);
    s.scores = {through(s.ratios.chosen, config_.f_divergence_type, config_.f_alpha_divergence_coef),
                through(s.ratios.rejected, config_.f_divergence_type, config_.f_alpha_divergence_coef)};
    s.lengths = halves(batch.column(answer_tokens).to(logps.device()).clamp_min(1));
    const Tensor plain = halves(policy.sums(policy.logps)).chosen;
    s.chosen_mean = plain.sum() / halves(policy.lengths).chosen.sum();

    Loss out;
    for (size_t i = 0; i < config_.loss_type.size(); ++i) {
      const double weight = config_.loss_weights.empty() ? 1.0 : config_.loss_weights[i];
      const Tensor one = pair_loss(config_.loss_type[i], s, config_).mean() * (weight * batch.weight);
      out.sum = out.sum.defined() ? out.sum + one : one;
    }
    if (how.metrics) add_metrics(out, s, policy);
    return out;
  }

  void examine(std::span<data::Example> examples, const Forwarding& forwarding) override {
    if (!config_.precompute_ref_log_probs || config_.reference_free) return;
    const c10::AutoGradMode no_grad(false);
    Forwarding how = forwarding;
    how.training = how.metrics = false;
    for (data::Example& example : examples) {
      if (example.find(reference_logps)) continue;
      const data::Example* one = &example;
      const Batch batch = collate({&one, 1});
      const SequenceScores scores = score_sequences(*reference_, batch, how, {});
      const Tensor sums = answer_logps(scores, scores.logps).to(at::kCPU);
      example.set({reference_logps, data::Column::Per::sequence,
                   std::vector<float>{sums[0].item<float>(), sums[1].item<float>()}});
    }
    reference_.reset();
  }

  void updated(const models::Model& model, int64_t step) override {
    if (!config_.sync_ref_model || step % config_.ref_model_sync_steps != 0) return;
    const c10::AutoGradMode no_grad(false);
    for (nn::Entry& entry : reference_->parameters().entries()) {
      const nn::Entry* now = const_cast<models::Model&>(model).parameters().find(entry.path);
      check(now, "the reference has a parameter that the model has not: ", entry.path);
      entry.shard.mul_(1 - config_.ref_model_mixup_alpha)
          .add_(now->shard.detach().to(entry.shard.scalar_type()), config_.ref_model_mixup_alpha);
      entry.written();
    }
  }

  MethodState state() const override {
    MethodState out;
    if (config_.sync_ref_model)
      for (const nn::Entry& entry : reference_->parameters().entries())
        out.tensors.push_back({"reference." + entry.path, entry.shard, &entry});
    return out;
  }

  void restore(const SavedState& saved) override {
    if (!config_.sync_ref_model) return;
    for (nn::Entry& entry : reference_->parameters().entries()) {
      saved.copy_into(entry.shard, "reference." + entry.path, &entry);
      entry.written();
    }
  }

 private:
  int64_t truncate(std::vector<int32_t>& ids, std::vector<uint8_t>& learn) const {
    const auto most = size_t(common_.max_length.value_or(0));
    if (most == 0 || ids.size() <= most) return 0;
    const auto cut = static_cast<std::ptrdiff_t>(ids.size() - most);
    const bool start = common_.truncation_mode == Truncation::keep_start;
    ids.erase(start ? ids.end() - cut : ids.begin(), start ? ids.end() : ids.begin() + cut);
    learn.erase(start ? learn.end() - cut : learn.begin(), start ? learn.end() : learn.begin() + cut);
    return cut;
  }

  // [2 * pairs], the chosen half first. With ld_alpha, tokens of an answer beyond the length of the shorter one are
  // weighted by it.
  Tensor answer_logps(const SequenceScores& scores, const Tensor& per_token) const {
    if (!config_.ld_alpha) return scores.sums(per_token);
    const Tensor ends = scores.lengths.cumsum(0);
    const Tensor place =
        at::ones_like(scores.sequence).cumsum(0) - (ends - scores.lengths).index_select(0, scores.sequence);
    const auto [chosen, rejected] = halves(scores.lengths);
    const Tensor shared = at::minimum(chosen, rejected);
    const Tensor tail = place.gt(at::cat({shared, shared}).index_select(0, scores.sequence));
    return scores.sums(per_token * (1 - (1 - *config_.ld_alpha) * tail.to(at::kFloat)));
  }

  Tensor logps_of_reference(const SequenceScores& policy, const Batch& batch, Forwarding how) const {
    const c10::AutoGradMode no_grad(false);
    if (config_.reference_free) return at::zeros_like(policy.lengths);
    if (batch.has(reference_logps)) return batch.column(reference_logps).to(policy.logps.device());
    how.training = how.metrics = false;
    how.checkpointing = nn::Checkpointing::none;
    const SequenceScores scores = score_sequences(*reference_, batch, how, {});
    return answer_logps(scores, scores.logps);
  }

  void add_metrics(Loss& out, const Scores& s, const SequenceScores& policy) const {
    const auto total = [](const Tensor& t) { return t.sum().item<double>(); };
    const auto pairs = double(s.ratios.chosen.size(0));
    const Tensor chosen = config_.beta * s.ratios.chosen.detach(), rejected = config_.beta * s.ratios.rejected.detach();
    out.metrics.push_back({"rewards/chosen", total(chosen), pairs});
    out.metrics.push_back({"rewards/rejected", total(rejected), pairs});
    out.metrics.push_back({"rewards/accuracies", total(chosen.gt(rejected)), pairs});
    out.metrics.push_back({"rewards/margins", total(chosen - rejected), pairs});
    out.metrics.push_back({"logps/chosen", total(s.logps.chosen.detach()), pairs});
    out.metrics.push_back({"logps/rejected", total(s.logps.rejected.detach()), pairs});
    const auto counts = halves(policy.lengths), logits = halves(policy.sums(policy.details.mean_logit));
    out.metrics.push_back({"logits/chosen", total(logits.chosen), total(counts.chosen)});
    out.metrics.push_back({"logits/rejected", total(logits.rejected), total(counts.rejected)});
    out.metrics.push_back({"entropy", total(policy.details.entropy), total(policy.lengths)});
    const auto correct = halves(policy.sums(policy.details.correct.to(at::kFloat)));
    out.metrics.push_back({"mean_token_accuracy", total(correct.chosen), total(counts.chosen)});
  }

  DpoConfig config_;
  TrainerConfig common_;
  std::shared_ptr<models::Model> reference_;
  std::optional<data::Encoder> encoder_;
};

}  // namespace

MethodEntry dpo() {
  return {"dpo", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Dpo>(setting); }};
}

}  // namespace easydel::train
