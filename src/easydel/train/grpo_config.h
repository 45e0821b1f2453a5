// The keys of `trainer_type: grpo`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "easydel/config/fields.h"
#include "easydel/train/rollout_keys_config.h"

namespace easydel::train {

enum class GrpoLoss : uint8_t { grpo, bnpo, dr_grpo, dapo, cispo };
constexpr auto choices(GrpoLoss) {
  using enum GrpoLoss;
  return std::array{config::Choice{grpo, "grpo"}, config::Choice{bnpo, "bnpo"}, config::Choice{dr_grpo, "dr_grpo"},
                    config::Choice{dapo, "dapo"}, config::Choice{cispo, "cispo"}};
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

struct GrpoKeys {
  double beta = 0.04;
  double epsilon = 0.2;
  std::optional<double> epsilon_high = {};
  std::optional<double> delta = {};
  int64_t num_iterations = 1;
  GrpoLoss loss_type = GrpoLoss::dapo;
  ImportanceLevel importance_sampling_level = ImportanceLevel::token;
  RewardScale scale_rewards = RewardScale::group;
  double top_entropy_quantile = 1;
  std::optional<int64_t> ref_logps_chunk_size = {};
  std::optional<int64_t> completion_chunk_size = {};
  std::optional<int64_t> max_loss_completion_tokens = {};

  static constexpr auto doc = "Groups of completions compared with each other.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::beta>("Weight of the divergence from the reference.", at_least(0), alias("kl_coef")),
        field<&C::epsilon>("Lower clip range of the probability ratio.", at_least(0)),
        field<&C::epsilon_high>("Upper clip range of the probability ratio; null: as epsilon.", at_least(0)),
        field<&C::delta>("Upper bound of the ratio for bad completions; null: none.", above(1)),
        field<&C::num_iterations>("Updates from one set of completions.", at_least(1)),
        field<&C::loss_type>("Normalization of the summed loss."),
        field<&C::importance_sampling_level>("Whether ratios are computed per token or per completion."),
        field<&C::scale_rewards>(
            "What advantages are divided by: the standard deviation in the group, that in the batch, or nothing."),
        field<&C::top_entropy_quantile>("Train only on this fraction of the tokens, those with the highest entropy.",
                                        between(0, 1)),
        field<&C::ref_logps_chunk_size>("Completions scored by the reference at a time.", at_least(1)),
        field<&C::completion_chunk_size>("Completions in a forward and backward.", at_least(1)),
        field<&C::max_loss_completion_tokens>("Maximum number of a completion's tokens in the loss; null: all.",
                                              at_least(1)),
    };
  }
};

struct GrpoConfig {
  GrpoKeys own;
  RolloutKeys rollouts;
  ReferenceKeys reference;

  static config::Section section() {
    return config::flat<&GrpoConfig::own, &GrpoConfig::rollouts, &GrpoConfig::reference>(
        "Group relative policy optimisation (arXiv:2402.03300).");
  }
};

}  // namespace easydel::train
