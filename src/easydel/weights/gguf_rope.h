// Rotary positions whose frequencies are divided by a list of factors: rope_freqs.weight of a GGUF file, and the keys
// of config.json that mean the same.
#pragma once

#include <span>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::weights {

// The factors of Llama 3.1 for `dim` rotated dimensions. Source: transformers modeling_rope_utils.py.
std::vector<float> llama3_rope_factors(double theta, int64_t dim, double factor, double low, double high,
                                       double original);

// Adds rope_type and its keys to `parameters`, which must have rope_theta: llama3 if the factors are those of Llama 3.1
// for the length `original` (or 8192), else longrope, which accepts any factors.
void set_rope_factors(Value& parameters, std::span<const float> factors, int64_t original);

}  // namespace easydel::weights
