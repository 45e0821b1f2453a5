// The keys of config.json that cohere and cohere2 share.
#pragma once

#include "easydel/models/decoder_keys.h"

namespace easydel::models {

// theta: base of rotary positions if config.json has none.
DecoderSpec read_cohere(const ConfigReader& config, double theta);

}  // namespace easydel::models
