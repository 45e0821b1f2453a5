// What a model meets in an episode: an environment that begins it, answers the model's turns, and rewards them. No
// torch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/train/environment_config.h"

namespace easydel::train {

struct EnvironmentAnswer {
  std::vector<Value> messages;  // maps of role and content; they follow the prompt, or the model's turn
  double reward = 0;            // of the model's turn
  bool done = false;            // the episode is over
};

// Episodes have numbers from 0; a number that begins again is another episode.
class Environment {
 public:
  struct Beginning {
    size_t episode = 0;
    const Value& row;   // every field
    uint64_t seed = 0;  // the same for the episodes of a group
  };
  struct Turn {
    size_t episode = 0;
    const Value& message;  // of the model: role, content, perhaps reasoning_content and tool_calls
  };
  virtual ~Environment() = default;
  // In the order of what is asked. UserError if it cannot answer. Not thread-safe.
  virtual std::vector<EnvironmentAnswer> begin(std::span<const Beginning> episodes) = 0;
  virtual std::vector<EnvironmentAnswer> step(std::span<const Turn> turns) = 0;
};

// Programs are started with the first episodes. UserError for an unknown plug-in's name.
std::unique_ptr<Environment> build_environment(const EnvironmentConfig& config);

// An episode in an environment of a plug-in.
class EnvironmentEpisode {
 public:
  virtual ~EnvironmentEpisode() = default;
  virtual EnvironmentAnswer begin(const Value& row, uint64_t seed) = 0;
  virtual EnvironmentAnswer step(const Value& message) = 0;
};
using MakeEpisode = std::unique_ptr<EnvironmentEpisode> (*)();
// For `environment: {type: plugin, function: name}`. UserError if the name is taken. Before a run begins.
void register_environment(const std::string& name, MakeEpisode make);

}  // namespace easydel::train
