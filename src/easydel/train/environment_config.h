// The key `trainer.environment`: what answers the model in an episode. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "easydel/config/fields.h"

namespace easydel::train {

enum class EnvironmentType : uint8_t { program, plugin };
constexpr auto choices(EnvironmentType) {
  using enum EnvironmentType;
  return std::array{config::Choice{program, "program"}, config::Choice{plugin, "plugin"}};
}

struct EnvironmentConfig {
  EnvironmentType type = EnvironmentType::program;
  config::Many<std::string> command;
  std::optional<std::string> function;
  int64_t workers = 1;
  double timeout_seconds = 60;

  static constexpr auto doc = "What answers the model in an episode, and rewards it.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::type>("program: a child process; plugin: an environment of a plug-in."),
        field<&C::command>(
            "program: the program and its arguments. It reads a line of JSON for each episode that begins {id, "
            "episode, seed, row} and for each turn of the model {id, episode, message}, and answers each with {id, "
            "messages, reward, done}, in any order. `messages` (a list of {role, content}) goes on after the row's "
            "prompt or after the model's turn; reward (default 0) and done (default false) are of the turn."),
        field<&C::function>("plugin: the name that the plug-in has given to the environment."),
        field<&C::workers>("program: processes that share the episodes.", between(1, 64)),
        field<&C::timeout_seconds>("program: seconds without an answer after which it has failed.", above(0)),
    };
  }
  void settle(config::Keys& keys);
};

}  // namespace easydel::train
