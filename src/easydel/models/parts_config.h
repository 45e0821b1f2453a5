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

// The model that a loaded part belongs to, needed to save the whole model.
struct WholeModel {
  Value config;  // the folder's config.json
  weights::Folder folder;
  std::vector<std::string> left_alone;  // tensors of other parts
};

// The config.json of a part by itself. `config` is the folder's, which errors call `where`; for a model with one part
// it is the text's. Throws UserError "where: key: what" if the model has no such part or does not describe it, or if
// its architecture is not one for text alone.
Value part_config(const Value& config, const Where& where, PartRole role);

// The part's own name of a tensor of the folder, for a stack named `base`; empty: the tensor belongs to another part.
// For text, in the spellings of transformers from 4.45 on: "model.language_model.layers.0...",
// "language_model.model.layers.0...", and "lm_head" next to the part or inside it.
std::string part_tensor_name(std::string_view name, const FamilyPart& part, std::string_view base);

}  // namespace easydel::models
