// The keys of `trainer_type: rlvr`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "easydel/config/fields.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/method_facts.h"

namespace easydel::train {

struct RlvrKeys {
  std::optional<std::string> answer_key = "answer";
  std::string test_key = "tests";
  std::optional<std::string> format_pattern = {};
  double format_reward_weight = 0;
  std::optional<int64_t> length_penalty_target = {};
  double length_penalty_weight = 0;
  bool max_len_mask = true;
  std::optional<double> reward_clip_range = {};
  std::optional<std::string> difficulty_key = {};
  bool difficulty_loss_weight = false;

  static constexpr auto doc = "What is checked.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::answer_key>("Field with the right answer."),
        field<&C::test_key>("Field with unit tests for code."),
        field<&C::format_pattern>("Regular expression that a completion should match."),
        field<&C::format_reward_weight>("Weight of the format's reward.", at_least(0)),
        field<&C::length_penalty_target>("Length in tokens above which completions are penalized; null: none.",
                                         at_least(1)),
        field<&C::length_penalty_weight>("Weight of the length penalty.", at_least(0)),
        field<&C::max_len_mask>("Mask truncated completions in the loss."),
        field<&C::reward_clip_range>("Bound of rewards; null: none.", above(0)),
        field<&C::difficulty_key>("Field with the difficulty."),
        field<&C::difficulty_loss_weight>("Weight of a row's difficulty in its loss."),
    };
  }
};

struct RlvrConfig {
  RlvrKeys own;
  GrpoKeys grpo;
  RolloutKeys rollouts = {
      .max_prompt_length = long_prompt_length, .max_completion_length = 2048, .num_return_sequences = 8};
  WindowKeys window;
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;
  bool has_reference() const { return grpo.beta != 0; }
  bool judges_itself() const {
    return own.answer_key || (own.format_pattern && own.format_reward_weight > 0) ||
           (own.length_penalty_target && own.length_penalty_weight > 0);
  }

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<GrpoKeys, RolloutKeys, WindowKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&RlvrConfig::own, &RlvrConfig::grpo, &RlvrConfig::rollouts, &RlvrConfig::window,
                        &RlvrConfig::reference>(
        "Reinforcement learning with verifiable rewards: answers, tests, formats.");
  }
};

}  // namespace easydel::train
