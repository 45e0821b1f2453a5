// PEFT's names of tensors and layers.
#pragma once

#include <string>
#include <string_view>

#include "easydel/nn/parameter.h"

namespace easydel::models {

// Before the path of a layer of the model.
inline constexpr std::string_view peft_prefix = "base_model.model.";

// The output layers of classification models, which all-linear leaves out.
inline bool is_class_head(std::string_view module) { return module == "score" || module == "classifier"; }

// The path of a router or of stacked experts in transformers 5, whatever the checkpoint calls it.
inline std::string name_in_peft(std::string module) {
  constexpr std::string_view old = ".block_sparse_moe.";
  if (const size_t at = module.find(old); at != std::string::npos) module.replace(at, old.size(), ".mlp.");
  return module;
}

// The name that a parameter of an adapter has in PEFT's model: with the adapter's own name in it.
inline std::string peft_name(const nn::Entry& entry) {
  const bool vector = entry.path.find(".lora_magnitude_vector.") != std::string::npos;
  return std::string(peft_prefix) + entry.path + (vector ? ".weight" : "");
}

}  // namespace easydel::models
