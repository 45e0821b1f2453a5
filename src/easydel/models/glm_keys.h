// The keys of config.json that glm and glm4 share.
#pragma once

#include "easydel/models/decoder_keys.h"

namespace easydel::models {

DecoderSpec read_glm(const ConfigReader& config);

}  // namespace easydel::models
