// The keys of `trainer_type: agentic_moshpit`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/train/environment_config.h"
#include "easydel/train/grpo_config.h"

namespace easydel::train {

enum class EpisodeReward : uint8_t { episode, step, gigpo };
constexpr auto choices(EpisodeReward) {
  using enum EpisodeReward;
  return std::array{config::Choice{episode, "episode"}, config::Choice{step, "step"}, config::Choice{gigpo, "gigpo"}};
}

enum class AdvantageEstimator : uint8_t { grpo, reinforce, gigpo, step_reinforce, agentic_reinforce };
constexpr auto choices(AdvantageEstimator) {
  using enum AdvantageEstimator;
  return std::array{config::Choice{grpo, "grpo"}, config::Choice{reinforce, "reinforce"},
                    config::Choice{gigpo, "gigpo"}, config::Choice{step_reinforce, "step_reinforce"},
                    config::Choice{agentic_reinforce, "agentic_reinforce"}};
}

struct AgenticMoshpitKeys {
  int64_t max_steps = 10;
  int64_t num_env_groups = 4;
  EpisodeReward reward_mode = EpisodeReward::episode;
  AdvantageEstimator advantage_estimator = AdvantageEstimator::grpo;
  double step_reward_gamma = 0.95;
  double episode_reward_weight = 1;
  double step_reward_weight = 1;
  std::optional<std::string> system_prompt = {};
  std::optional<std::vector<std::string>> tool_names = {};
  Value tool_schemas = {};
  std::optional<std::string> tool_caller = {};
  int64_t max_tool_calls_per_step = 5;
  std::optional<int64_t> max_turn_length = {};
  std::optional<std::string> reasoning_parser = {};
  std::optional<EnvironmentConfig> environment = {};

  static constexpr auto doc = "The episodes.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_steps>("Turns of the model in an episode.", at_least(1)),
        field<&C::num_env_groups>("Groups of episodes.", at_least(1),
                                  no_effect("total_batch_size counts episodes, num_return_sequences those of a group")),
        field<&C::reward_mode>("Whether rewards are given per episode or per turn.",
                               no_effect("advantage_estimator says it")),
        field<&C::advantage_estimator>(
            "grpo: an episode's sum of rewards, compared within its group; reinforce: within the generation; "
            "step_reinforce (also agentic_reinforce): the discounted sum of its turns' rewards, within the group; "
            "gigpo: "
            "the weighted sum of grpo's and step_reinforce's advantages."),
        field<&C::step_reward_gamma>("Discount of later turns.", between(0, 1)),
        field<&C::episode_reward_weight>("gigpo: weight of grpo's advantages.", at_least(0)),
        field<&C::step_reward_weight>("gigpo: weight of step_reinforce's advantages.", at_least(0)),
        field<&C::system_prompt>("Message before every prompt."),
        field<&C::tool_names>("Tools that we answer ourselves: calculator."),
        field<&C::tool_schemas>(
            "JSON schemas of tools for the chat template; null: those of tool_names and of tools. Calls of tools that "
            "are not in tool_names go to the environment."),
        field<&C::tool_caller>(
            "Format of the model's tool calls, as esurge.tool_parser; null: as the chat template shows it."),
        field<&C::max_tool_calls_per_step>("Calls that are answered in a turn; others get an error as answer.",
                                           at_least(0)),
        field<&C::max_turn_length>("Tokens of a turn of the model, which ends the episode if it reaches them; null: as "
                                   "many as max_completion_length leaves.",
                                   at_least(1)),
        field<&C::reasoning_parser>(
            "Format of the model's reasoning, as esurge.reasoning_parser; null: as the chat template shows it."),
        field<&C::environment>("What answers the model's turns and rewards them; null: tools alone do."),
    };
  }
};

struct AgenticMoshpitConfig {
  AgenticMoshpitKeys own;
  GrpoKeys grpo;
  RolloutKeys rollouts = {.max_completion_length = 1024};
  WindowKeys window;
  ReferenceKeys reference;

  static constexpr MethodFacts facts = facts_of_sampling;
  bool has_reference() const { return grpo.beta != 0; }
  bool judges_itself() const { return own.environment.has_value(); }

  static std::vector<std::string_view> keys_after_examples() {
    return keys_after_examples_of<GrpoKeys, RolloutKeys, WindowKeys, ReferenceKeys>();
  }

  static config::Section section() {
    return config::flat<&AgenticMoshpitConfig::own, &AgenticMoshpitConfig::grpo, &AgenticMoshpitConfig::rollouts,
                        &AgenticMoshpitConfig::window, &AgenticMoshpitConfig::reference>(
        "Episodes of many turns with tools and an environment, learned as grpo learns completions. Rows give the "
        "prompts; max_completion_length counts the tokens of a whole episode.");
  }
};

}  // namespace easydel::train
