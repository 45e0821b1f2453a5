#include "easydel/train/policy_loss.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/quantile.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

namespace easydel::train {
namespace {

double number(const Tensor& scalar) { return scalar.item<double>(); }

// The computation of one micro-batch. "Level": a quantity of each token [T], or of each completion [N] if ratios are
// those of completions.
class PolicyComputation {
 public:
  PolicyComputation(const PolicyTokens& tokens, const PolicyLossOptions& options, const Forwarding& forwarding)
      : t_(tokens), o_(options), keys_(options.keys), whole_(forwarding) {
    completions_ = whole_.total(double(t_.lengths.size(0)));
    all_tokens_ = whole_.total(double(t_.logps.size(0)));
    high_ = keys_.epsilon_high.value_or(keys_.epsilon);
    by_completion_ = keys_.importance_sampling_level == ImportanceLevel::sequence && keys_.loss_type != GrpoLoss::gmpo;
  }

  PolicyLoss run() {
    if (keys_.top_entropy_quantile < 1) keep_uncertain_tokens();
    const Tensor old = t_.old_logps.defined() ? t_.old_logps : t_.logps.detach();
    log_ratio_ = t_.logps - old;
    advantages_ = of_tokens(t_.advantages);
    PolicyLoss out;
    const Tensor policy = keys_.loss_type == GrpoLoss::gmpo ? geometric_mean() : reduced(token_losses(old));
    out.sum = policy;
    if (o_.entropy_bonus) add_entropy(out, policy);
    add_metrics(out);
    return out;
  }

 private:
  Tensor sums(const Tensor& of_tokens) const {
    return at::zeros({t_.lengths.size(0)}, of_tokens.options()).index_add(0, t_.completion, of_tokens);
  }
  Tensor of_tokens(const Tensor& of_completions) const { return of_completions.index_select(0, t_.completion); }
  Tensor lengths() const { return t_.lengths.clamp_min(1); }
  // A quantity of either level as one of tokens.
  Tensor spread(const Tensor& level) const { return by_completion_ ? of_tokens(level) : level; }

  void keep_uncertain_tokens() {
    const Tensor entropy = t_.entropy.detach();
    const Tensor all = whole_.gather(entropy);
    if (all.size(0) == 0) {
      kept_ = at::ones_like(entropy);
      return;
    }
    kept_ = entropy.ge(at::quantile(all, 1 - keys_.top_entropy_quantile)).to(at::kFloat);
  }

  Tensor divergence() const {
    const Tensor difference = t_.reference - t_.logps;
    return difference.exp() - difference - 1;
  }

  // The weight of a completion's gradient by its whole ratio (vespo), [N].
  Tensor gamma_weights() const {
    const double lowest = std::log(1e-8);
    const Tensor log_weight = sums(log_ratio_.detach().clamp(-20, 20)).clamp(lowest, 20), weight = log_weight.exp();
    const Tensor good = t_.advantages.ge(0);
    const auto either = [&](double pos, double neg) {
      return at::where(good, at::full({}, pos, weight.options()), at::full({}, neg, weight.options()));
    };
    const Tensor lambda = either(keys_.vespo_lambda_pos, keys_.vespo_lambda_neg).clamp_min(1e-4);
    const Tensor log_phi = lambda + either(keys_.vespo_k_pos, keys_.vespo_k_neg) * log_weight - lambda * weight;
    return at::nan_to_num(log_phi.exp(), 0.0, 0.0, 0.0);
  }

  Tensor token_losses(const Tensor& old) {
    const Tensor log_weight = by_completion_ ? sums(log_ratio_) / lengths() : log_ratio_;
    ratio_ = log_weight.exp();
    if (t_.reference.defined()) {
      kl_ = divergence();
      if (keys_.use_bias_correction_kl) kl_ = kl_ * spread(ratio_);
    }
    Tensor loss;
    switch (keys_.loss_type) {
      case GrpoLoss::cispo:
        loss = -spread(ratio_.clamp_max(high_).detach()) * advantages_ * t_.logps;
        break;
      case GrpoLoss::sapo: {
        const Tensor temperature =
            at::where(advantages_.gt(0), at::full({}, keys_.sapo_temperature_pos, advantages_.options()),
                      at::full({}, keys_.sapo_temperature_neg, advantages_.options()));
        loss = -((temperature * (spread(ratio_) - 1)).sigmoid() * 4 / temperature) * advantages_;
        break;
      }
      case GrpoLoss::vespo:
        phi_ = gamma_weights();
        loss = -of_tokens(phi_) * advantages_ * t_.logps;
        break;
      default: {
        const Tensor clipped = spread(ratio_.clamp(1 - keys_.epsilon, 1 + high_));
        if (keys_.delta) ratio_ = ratio_.clamp_max(*keys_.delta);
        loss = -at::minimum(spread(ratio_) * advantages_, clipped * advantages_);
      }
    }
    if (keys_.off_policy_mask_threshold) {
      const Tensor drift = sums(old - t_.logps.detach()) / lengths();
      const Tensor keep = t_.advantages.ge(0).logical_or(drift.le(*keys_.off_policy_mask_threshold));
      loss = loss * of_tokens(keep.to(at::kFloat));
    }
    if (kept_.defined()) loss = loss * kept_;
    if (kl_.defined()) loss = loss + keys_.beta * kl_;
    return loss;
  }

  Tensor reduced(const Tensor& losses) const {
    switch (keys_.loss_type) {
      case GrpoLoss::grpo:
      case GrpoLoss::sapo:
        return (sums(losses) / lengths()).sum();
      case GrpoLoss::bnpo:
        return losses.sum() * (completions_ / std::max(all_tokens_, 1.0));
      case GrpoLoss::dr_grpo:
        return losses.sum() / double(o_.max_completion_length);
      case GrpoLoss::luspo:
        return losses.sum();
      default:
        return (losses / of_tokens(t_.mean_items)).sum();
    }
  }

  // The geometric mean of a completion's clipped ratios.
  Tensor geometric_mean() {
    ratio_ = log_ratio_;
    const Tensor clipped = log_ratio_.clamp(-keys_.epsilon, high_);
    const Tensor one_sided =
        at::where(advantages_.gt(0), at::minimum(log_ratio_, clipped), at::maximum(log_ratio_, clipped));
    const Tensor kept = kept_.defined() ? kept_ : at::ones_like(log_ratio_.detach());
    Tensor loss = -(sums(one_sided * kept) / sums(kept).clamp_min(1)).exp() * t_.advantages;
    if (t_.reference.defined()) {
      kl_ = divergence();
      loss = loss + keys_.beta * (sums(kl_) / lengths());
    }
    return loss.sum();
  }

  void add_entropy(PolicyLoss& out, const Tensor& policy) {
    const Tensor acted_on = kept_.defined() ? t_.entropy * kept_ : t_.entropy;
    out.entropy = whole_.total(number(acted_on.detach().sum()));
    out.entropy_tokens = whole_.total(kept_.defined() ? number(kept_.sum()) : double(t_.logps.size(0)));
    const double per_token = completions_ / std::max(out.entropy_tokens, 1.0);
    out.sum = policy - o_.entropy_coef * per_token * acted_on.sum();
    const bool over_generation =
        keys_.loss_type == GrpoLoss::dapo || keys_.loss_type == GrpoLoss::cispo || keys_.loss_type == GrpoLoss::vespo;
    const double share = over_generation ? double(o_.accumulation) : 1;
    out.metrics.push_back({"policy_loss", number(policy.detach()) / share, double(t_.lengths.size(0))});
  }

  void mean_of_tokens(PolicyLoss& out, const char* name, const Tensor& values) const {
    out.metrics.push_back({name, number(values.detach().sum()), double(values.size(0))});
  }

  // The smallest (or greatest) share of a completion's tokens; of completions with tokens alone.
  void extreme(PolicyLoss& out, const char* name, const Tensor& level, bool smallest) const {
    const Tensor of_each = by_completion_ ? level : (sums(level) / t_.lengths).masked_select(t_.lengths.gt(0));
    const Tensor all = whole_.gather(of_each);
    if (all.size(0) == 0) return;
    out.metrics.push_back({name, number(smallest ? all.min() : all.max()), 1});
  }

  void add_clipping(PolicyLoss& out, const Tensor& low, const Tensor& high) const {
    const Tensor below = low.to(at::kFloat), above = high.to(at::kFloat);
    mean_of_tokens(out, "clip_ratio/low_mean", below);
    mean_of_tokens(out, "clip_ratio/high_mean", above);
    mean_of_tokens(out, "clip_ratio/region_mean", low.logical_or(high).to(at::kFloat));
    extreme(out, "clip_ratio/low_min", below, true);
    extreme(out, "clip_ratio/high_max", above, false);
  }

  void add_metrics(PolicyLoss& out) const {
    if (kl_.defined()) mean_of_tokens(out, "kl", kl_);
    mean_of_tokens(out, "entropy", t_.entropy);
    const Tensor ratio = ratio_.detach(), advantages = by_completion_ ? t_.advantages : advantages_;
    switch (keys_.loss_type) {
      case GrpoLoss::cispo:
        mean_of_tokens(out, "cispo_clip_ratio", ratio.gt(high_).logical_and(advantages.gt(0)).to(at::kFloat));
        break;
      case GrpoLoss::vespo:
        mean_of_tokens(out, "vespo/phi_seq_mean", phi_);
        break;
      case GrpoLoss::sapo:
        break;
      default: {
        const bool logarithms = keys_.loss_type == GrpoLoss::gmpo;
        const double lowest = logarithms ? -keys_.epsilon : 1 - keys_.epsilon, highest = logarithms ? high_ : 1 + high_;
        add_clipping(out, ratio.lt(lowest).logical_and(advantages.lt(0)),
                     ratio.gt(highest).logical_and(advantages.gt(0)));
      }
    }
  }

  const PolicyTokens& t_;
  const PolicyLossOptions& o_;
  const GrpoKeys& keys_;
  const Forwarding& whole_;                  // for quantities of the whole micro-batch
  double completions_ = 0, all_tokens_ = 0;  // of it
  double high_ = 0;
  bool by_completion_ = false;
  Tensor log_ratio_, advantages_;  // [T]
  Tensor kept_;                    // fp32 [T], 1: of high entropy; undefined: all are
  Tensor ratio_, kl_, phi_;        // at their level; [T]; [N]
};

}  // namespace

PolicyLoss policy_loss(const PolicyTokens& tokens, const PolicyLossOptions& options, const Forwarding& forwarding) {
  return PolicyComputation(tokens, options, forwarding).run();
}

}  // namespace easydel::train
