// Folders of models of several parts (FamilyConfig::parts): the configuration of one part, and which of the folder's
// tensors are its own. A model of one part is its text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/models/family_configs.h"
#include "easydel/weights/folder.h"

namespace easydel::models {

// What a loaded part belongs to: with it the model is saved as what it was loaded from.
struct WholeModel {
  Value config;  // the folder's config.json
  weights::Folder folder;
  std::vector<std::string> left_alone;  // tensors of other parts
};

// What the own config.json of a part would say. `config` is a folder's config.json, which errors call `where`; that of
// a model of one part is its text's. UserError "where: key: what" if the model has no such part or does not describe
// it, or if its architecture is not one that reads text alone.
Value part_config(const Value& config, const Where& where, PartRole role);

// What the part by itself calls a tensor of the folder, for a stack that it calls `base`; empty: the tensor is of
// another part. Text, in the spellings of transformers from 4.45 on: "model.language_model.layers.0...",
// "language_model.model.layers.0...", and "lm_head" beside the part or within it.
std::string part_tensor_name(std::string_view name, const FamilyPart& part, std::string_view base);

}  // namespace easydel::models
