// Which layers an adapter would be put on: the rule of names alone. Adapters themselves are not built yet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/nn/parameter.h"

namespace easydel::models {

// Paths of the linear layers ("model.layers.0.self_attn.q_proj") that the regular expression `pattern` finds, in
// alphabetical order. Embeddings are not linear layers; an output layer with its own weight is one. Throws UserError
// for a rank below 1 and for an invalid regular expression.
std::vector<std::string> lora_targets(const nn::ParameterTable& parameters, const std::string& pattern, int64_t rank);

}  // namespace easydel::models
