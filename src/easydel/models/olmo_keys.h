// The keys of config.json that olmo2, olmo3 and flex_olmo share.
#pragma once

#include "easydel/models/decoder_keys.h"

namespace easydel::models {

// Norms after each part and over all queries and over all keys, scaled in fp32; attention_bias.
DecoderSpec read_olmo2(const ConfigReader& config, const DecoderDefaults& defaults);

}  // namespace easydel::models
