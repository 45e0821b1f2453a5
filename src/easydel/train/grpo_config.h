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
        field<&C::epsilon>("How far the probability ratio may fall.", at_least(0)),
        field<&C::epsilon_high>("How far it may rise; null: as epsilon.", at_least(0)),
        field<&C::delta>("Upper bound of the ratio for bad completions; null: none.", above(1)),
        field<&C::num_iterations>("Updates from one set of completions.", at_least(1)),
        field<&C::loss_type>("What the summed loss is divided by."),
        field<&C::importance_sampling_level>("Whether ratios are of tokens or of whole completions."),
        field<&C::scale_rewards>("What advantages are divided by: the deviation in the group, in the batch, nothing."),
        field<&C::top_entropy_quantile>("Learn only this share of tokens, those of the highest entropy.",
                                        between(0, 1)),
        field<&C::ref_logps_chunk_size>("Completions scored by the reference at a time.", at_least(1)),
        field<&C::completion_chunk_size>("Completions learned at a time.", at_least(1)),
        field<&C::max_loss_completion_tokens>("Tokens of a completion that count in the loss; null: all.", at_least(1)),
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
