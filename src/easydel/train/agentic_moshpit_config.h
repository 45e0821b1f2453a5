// The keys of `trainer_type: agentic_moshpit`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/train/grpo_config.h"

namespace easydel::train {

struct AgenticMoshpitKeys {
  int64_t max_steps = 10;
  int64_t num_env_groups = 4;
  std::string reward_mode = "episode";
  std::string advantage_estimator = "grpo";
  double step_reward_gamma = 0.95;
  double episode_reward_weight = 1;
  double step_reward_weight = 1;
  std::optional<std::string> system_prompt = {};
  std::optional<std::vector<std::string>> tool_names = {};
  Value tool_schemas = {};
  std::optional<std::string> tool_caller = {};
  int64_t max_tool_calls_per_step = 5;
  std::optional<std::string> reasoning_parser = {};

  static constexpr auto doc = "The episodes.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_steps>("Turns of an episode.", at_least(1)),
        field<&C::num_env_groups>("Groups of episodes.", at_least(1)),
        field<&C::reward_mode>("Whether rewards are given per episode or per step."),
        field<&C::advantage_estimator>("How advantages are computed from rewards."),
        field<&C::step_reward_gamma>("Discount of later steps.", between(0, 1)),
        field<&C::episode_reward_weight>("Weight of the episode's reward.", at_least(0)),
        field<&C::step_reward_weight>("Weight of the steps' rewards.", at_least(0)),
        field<&C::system_prompt>("System message."),
        field<&C::tool_names>("Tools by name."),
        field<&C::tool_schemas>("Tools by JSON Schema."),
        field<&C::tool_caller>("Format of tool calls."),
        field<&C::max_tool_calls_per_step>("Maximum number of tool calls in a turn.", at_least(0)),
        field<&C::reasoning_parser>("Format of reasoning."),
    };
  }
};

struct AgenticMoshpitConfig {
  AgenticMoshpitKeys own;
  GrpoKeys grpo;
  RolloutKeys rollouts = {.max_completion_length = 1024};
  WindowKeys window;
  ReferenceKeys reference;

  static config::Section section() {
    return config::flat<&AgenticMoshpitConfig::own, &AgenticMoshpitConfig::grpo, &AgenticMoshpitConfig::rollouts,
                        &AgenticMoshpitConfig::window, &AgenticMoshpitConfig::reference>(
        "Many turns with tools or an environment.");
  }
};

}  // namespace easydel::train
