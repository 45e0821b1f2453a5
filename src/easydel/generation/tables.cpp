// The tables of this layer's config structs.
#include "easydel/config/tables.h"
#include "easydel/generation/generation_config.h"

namespace easydel::config {

template const Section& section_of<generation::GenerationConfig>();
template const Section& section_of<generation::WatermarkingConfig>();

}  // namespace easydel::config
