// The tables of this layer's config structs.
#include "easydel/config/tables.h"
#include "easydel/generation/sampling_config.h"

namespace easydel::config {

template const Section& section_of<generation::SamplingConfig>();

}  // namespace easydel::config
