// What lfm2 and lfm2_moe share.
#pragma once

#include "easydel/models/decoder_keys.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models {

// Everything but the size of the mlp.
DecoderSpec read_lfm2(const ConfigReader& config, DecoderDefaults defaults);

}  // namespace easydel::models
