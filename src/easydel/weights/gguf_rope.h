// Rotary positions whose frequencies are divided by a list of factors: rope_freqs.weight of a GGUF file, and what
// config.json says of them.
#pragma once

#include <span>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::weights {

// The factors of Llama 3.1 for `dim` turned dimensions. Source: transformers modeling_rope_utils.py.
std::vector<float> llama3_rope_factors(double theta, int64_t dim, double factor, double low, double high,
                                       double original);

// Adds rope_type and its keys to `parameters`, which has rope_theta: llama3 where the factors are those of Llama 3.1's
// own numbers at the length `original` (or at 8192), else longrope, which takes any.
void set_rope_factors(Value& parameters, std::span<const float> factors, int64_t original);

}  // namespace easydel::weights
