// What qwen3_next and the qwen3_5 families share: attention with an output gate in every few layers, the gated delta
// rule in the others.
#pragma once

#include "easydel/models/decoder_keys.h"
#include "easydel/nn/moe.h"

namespace easydel::models {

// `fused`: the delta rule's projections are stored in two weights.
DecoderSpec read_qwen3_next(const ConfigReader& config, DecoderDefaults defaults, bool fused);

// Experts with softmax scores and one gated shared expert, in the layers marked by `sparse`. experts, top_k: defaults.
void set_qwen3_next_experts(const ConfigReader& config, DecoderSpec& spec, int64_t experts, int64_t top_k,
                            bool normalise, const std::vector<bool>& sparse);

}  // namespace easydel::models
