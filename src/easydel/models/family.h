// A family of models: how one is built, and how its checkpoints are read. The list is in families.cpp; which
// configurations are its own stands in family_configs.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/models/config_reader.h"
#include "easydel/models/model.h"
#include "easydel/nn/scope.h"

namespace easydel::models {

struct Family {
  std::string_view model_type;            // as config.json spells it
  std::string_view base_prefix;           // "model": what a checkpoint of the bare stack leaves out of its names
  std::vector<std::string_view> ignored;  // endings of names that old checkpoints hold beside the weights
  std::unique_ptr<Model> (*build)(const ConfigReader& config, nn::Building& building);
  bool tied_by_default = false;  // where config.json does not say tie_word_embeddings
  // Other spellings of a piece of a name: ours, and what some checkpoints say instead.
  std::vector<std::pair<std::string_view, std::string_view>> spellings = {};
  std::vector<std::string_view> ignored_parts = {};  // names with one of these in them are passed over (other heads)
  bool extra_layers = false;                         // so are layers behind the last (prediction of several tokens)
};

std::span<const Family> families();
// The family of a configuration; UserError as family_config_of.
const Family& family_of(const ConfigReader& config);

}  // namespace easydel::models
