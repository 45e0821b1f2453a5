// A family of models: how a model is built and how its checkpoints are read. families.cpp has the list,
// family_configs.cpp the part of it that needs no torch.
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
  std::string_view model_type;   // as config.json spells it
  std::string_view base_prefix;  // "model": the prefix that names in a checkpoint of the stack alone do not have
  std::vector<std::string_view> ignored;  // endings of tensors that old checkpoints have and models do not
  std::unique_ptr<Model> (*build)(const ConfigReader& config, nn::Building& building);
  bool tied_by_default = false;  // if config.json has no tie_word_embeddings
  // Parts of names that some checkpoints spell differently: our spelling and theirs.
  std::vector<std::pair<std::string_view, std::string_view>> spellings = {};
  std::vector<std::string_view> ignored_parts =
      {};                     // tensors with one of these in their name are ignored (other heads)
  bool extra_layers = false;  // layers after the last are ignored (multi-token prediction)
};

std::span<const Family> families();
// The family of a configuration; UserError as family_config_of.
const Family& family_of(const ConfigReader& config);

}  // namespace easydel::models
