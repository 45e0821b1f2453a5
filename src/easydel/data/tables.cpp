// The tables of this layer's config structs.
#include "easydel/config/tables.h"
#include "easydel/data/mixture_config.h"

namespace easydel::config {

template const Section& section_of<data::MixtureConfig>();

}  // namespace easydel::config
