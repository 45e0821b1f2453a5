// The keys of `trainer_type: grpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

// The metric of the mean reward, as TRL calls it; also the field of an answer that is a reward.
inline constexpr const char* reward_word = "reward";

enum class GrpoLoss : uint8_t { grpo, bnpo, dr_grpo, dapo, cispo, sapo, vespo, luspo, gmpo };
constexpr auto choices(GrpoLoss) {
  using enum GrpoLoss;
  return std::array{config::Choice{grpo, "grpo"},   config::Choice{bnpo, "bnpo"},   config::Choice{dr_grpo, "dr_grpo"},
                    config::Choice{dapo, "dapo"},   config::Choice{cispo, "cispo"}, config::Choice{sapo, "sapo"},
                    config::Choice{vespo, "vespo"}, config::Choice{luspo, "luspo"}, config::Choice{gmpo, "gmpo"}};
}

enum class ImportanceLevel : uint8_t { token, sequence };
constexpr auto choices(ImportanceLevel) {
  using enum ImportanceLevel;
  return std::array{config::Choice{token, "token"}, config::Choice{sequence, "sequence"}};
}

enum class RewardScale : uint8_t { group, batch, none };
constexpr auto choices(RewardScale) {
  using enum RewardScale;
  return std::array{config::Choice{group, "group"}.also("true"), config::Choice{batch, "batch"},
                    config::Choice{none, "none"}.also("false")};
}

enum class RewardAggregation : uint8_t { sum_then_normalize, normalize_then_sum };
constexpr auto choices(RewardAggregation) {
  using enum RewardAggregation;
  return std::array{config::Choice{sum_then_normalize, "sum_then_normalize"},
                    config::Choice{normalize_then_sum, "normalize_then_sum"}};
}

struct GrpoKeys {
  double beta = 0.04;
  double epsilon = 0.2;
  std::optional<double> epsilon_high = {};
  std::optional<double> delta = {};
  bool use_bias_correction_kl = true;
  GrpoLoss loss_type = GrpoLoss::dapo;
  ImportanceLevel importance_sampling_level = ImportanceLevel::token;
  Importance importance = Importance::full;
  RewardScale scale_rewards = RewardScale::group;
  RewardAggregation multi_objective_aggregation = RewardAggregation::sum_then_normalize;
  double top_entropy_quantile = 1;
  double entropy_coef = 0;
  bool use_adaptive_entropy = false;
  double entropy_coef_min = 0, entropy_coef_max = 1, entropy_coef_delta = 0.005, entropy_target = 0.2;
  std::optional<double> off_policy_mask_threshold = {};
  double sapo_temperature_neg = 1.05, sapo_temperature_pos = 1;
  double vespo_k_pos = 2, vespo_lambda_pos = 3, vespo_k_neg = 3, vespo_lambda_neg = 2;
  std::optional<int64_t> ref_logps_chunk_size = {};
  std::optional<int64_t> completion_chunk_size = {};
  std::optional<int64_t> max_loss_completion_tokens = {};

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&GrpoKeys::beta, &GrpoKeys::epsilon, &GrpoKeys::epsilon_high, &GrpoKeys::delta,
                    &GrpoKeys::use_bias_correction_kl, &GrpoKeys::loss_type, &GrpoKeys::importance_sampling_level,
                    &GrpoKeys::importance, &GrpoKeys::scale_rewards, &GrpoKeys::multi_objective_aggregation,
                    &GrpoKeys::top_entropy_quantile, &GrpoKeys::entropy_coef, &GrpoKeys::use_adaptive_entropy,
                    &GrpoKeys::entropy_coef_min, &GrpoKeys::entropy_coef_max, &GrpoKeys::entropy_coef_delta,
                    &GrpoKeys::entropy_target, &GrpoKeys::off_policy_mask_threshold, &GrpoKeys::sapo_temperature_neg,
                    &GrpoKeys::sapo_temperature_pos, &GrpoKeys::vespo_k_pos, &GrpoKeys::vespo_lambda_pos,
                    &GrpoKeys::vespo_k_neg, &GrpoKeys::vespo_lambda_neg>();
  }

  static constexpr auto doc = "Groups of completions compared with each other.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("Weight of the divergence from the reference.", at_least(0), alias("kl_coef")),
        field<&C::epsilon>("Lower clip range of the probability ratio.", at_least(0)),
        field<&C::epsilon_high>("Upper clip range of the probability ratio; null: as epsilon.", at_least(0)),
        field<&C::delta>("Upper bound of the ratio for bad completions; null: none.", above(1)),
        field<&C::use_bias_correction_kl>(
            "Multiply the divergence from the reference by the probability ratio, so that its gradient is unbiased."),
        field<&C::loss_type>(
            "Form and normalization of the loss: grpo, bnpo, dr_grpo and dapo differ in what the sum over tokens is "
            "divided by (a sequence's tokens, the micro-batch's, max_completion_length, the generation's); cispo clips "
            "the weight alone (arXiv:2506.13585), sapo has a soft clip (arXiv:2511.20347), vespo weighs by the whole "
            "completion's ratio, luspo sums over a completion's tokens, gmpo takes the geometric mean of a "
            "completion's "
            "ratios (arXiv:2507.20673)."),
        field<&C::importance_sampling_level>("Whether ratios are computed per token or per completion."),
        field<&C::importance>(importance_help),
        field<&C::scale_rewards>(
            "What advantages are divided by: the standard deviation in the group, that in the batch, or nothing."),
        field<&C::multi_objective_aggregation>(
            "Whether several rewards are added and then normalized in their group, or normalized one by one, added, "
            "and normalized over the batch."),
        field<&C::top_entropy_quantile>("Train only on this fraction of the tokens, those with the highest entropy.",
                                        between(0, 1)),
        field<&C::entropy_coef>("Weight of the mean entropy, which is added to the objective. Higher values keep "
                                "completions diverse for longer."),
        field<&C::use_adaptive_entropy>("Raise entropy_coef by entropy_coef_delta after steps whose entropy is at most "
                                        "entropy_target, and lower it "
                                        "after others; the bonus applies only while the entropy is low."),
        field<&C::entropy_coef_min>("Lowest entropy_coef with use_adaptive_entropy."),
        field<&C::entropy_coef_max>("Highest entropy_coef with use_adaptive_entropy."),
        field<&C::entropy_coef_delta>("Change of entropy_coef per step with use_adaptive_entropy.", at_least(0)),
        field<&C::entropy_target>("Entropy per token that use_adaptive_entropy aims at, in nats.", at_least(0)),
        field<&C::off_policy_mask_threshold>(
            "Leave out bad completions whose mean log-ratio between the sampling policy and the trained one is above "
            "this; null: none are left out.",
            above(0)),
        field<&C::sapo_temperature_neg>("Temperature of sapo's soft clip for bad completions.", above(0)),
        field<&C::sapo_temperature_pos>("Temperature of sapo's soft clip for good completions.", above(0)),
        field<&C::vespo_k_pos>("Exponent of vespo's weight for good completions."),
        field<&C::vespo_lambda_pos>("Decay of vespo's weight for good completions."),
        field<&C::vespo_k_neg>("Exponent of vespo's weight for bad completions."),
        field<&C::vespo_lambda_neg>("Decay of vespo's weight for bad completions."),
        field<&C::ref_logps_chunk_size>("Completions scored by the reference at a time.", at_least(1),
                                        no_effect("scores run over chunks of tokens")),
        field<&C::completion_chunk_size>("Completions in a forward and backward.", at_least(1),
                                         no_effect("gradient_accumulation_steps says it")),
        field<&C::max_loss_completion_tokens>("Maximum number of a completion's tokens in the loss; null: all.",
                                              at_least(1), not_built("a loss on a part of a completion")),
    };
  }
};

struct GrpoConfig {
  GrpoKeys own;
  RolloutKeys rollouts;
  WindowKeys window;
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;
  bool has_reference() const { return own.beta != 0; }

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<GrpoKeys, RolloutKeys, WindowKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&GrpoConfig::own, &GrpoConfig::rollouts, &GrpoConfig::window, &GrpoConfig::reference>(
        "Group relative policy optimisation (arXiv:2402.03300).");
  }
};

}  // namespace easydel::train
