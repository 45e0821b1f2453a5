// What qwen3_next and the qwen3_5 families share: attention with an output gate in every few layers, the gated delta
// rule in the others.
#pragma once

#include "easydel/models/decoder_keys.h"
#include "easydel/nn/moe.h"

namespace easydel::models {

// `fused`: the delta rule's projections lie in two weights.
DecoderSpec read_qwen3_next(const ConfigReader& config, DecoderDefaults defaults, bool fused);

// Experts by softmax, and one that every token meets through a gate, in the layers that `sparse` says. experts, top_k:
// where the configuration is silent.
void set_qwen3_next_experts(const ConfigReader& config, DecoderSpec& spec, int64_t experts, int64_t top_k,
                            bool normalise, const std::vector<bool>& sparse);

}  // namespace easydel::models
