// The language model inside a folder of a model that also sees or hears: its own configuration, and which of the
// folder's tensors are its. What sees and hears is left alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/weights/folder.h"

namespace easydel::models {

struct TextPart {
  Value config;       // what the language model's own config.json would say
  std::string whole;  // model_type of the folder: "mistral3"
};

// What a loaded language model was a part of: with it the model is saved as what it was loaded from.
struct WholeModel {
  Value config;  // the folder's config.json
  weights::Folder folder;
  std::vector<std::string> left_alone;  // tensors of other parts
};

// nullopt: the configuration is no such model's. UserError where one has no text_config, or where
// the class asked for is none that reads text alone.
std::optional<TextPart> text_part_of(const Value& config, const Where& where);

// What the language model by itself calls a tensor of such a folder, for a stack that it calls `base`; empty: the
// tensor is of another part. Spellings of transformers from 4.45 on: "model.language_model.layers.0...",
// "language_model.model.layers.0...", "model.text_model.layers.0...", and "lm_head" beside or within.
std::string text_tensor_name(std::string_view name, std::string_view base);

}  // namespace easydel::models
