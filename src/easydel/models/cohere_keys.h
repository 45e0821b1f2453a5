// The keys of config.json that cohere and cohere2 share.
#pragma once

#include "easydel/models/decoder_keys.h"

namespace easydel::models {

// theta: of rotary positions, where the configuration is silent.
DecoderSpec read_cohere(const ConfigReader& config, double theta);

}  // namespace easydel::models
