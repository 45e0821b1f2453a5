// What qwen3_next and the qwen3_5 families share: attention with an output gate in every few layers, the gated delta rule
// in the others.
#pragma once

#include "easydel/models/decoder_keys.h"

namespace easydel::models {

// `fused`: the delta rule's projections lie in two weights.
DecoderSpec read_qwen3_next(const ConfigReader& config, DecoderDefaults defaults, bool fused);

}  // namespace easydel::models
