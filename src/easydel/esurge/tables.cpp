// The tables of this layer's config structs.
#include "easydel/config/tables.h"
#include "easydel/esurge/esurge_config.h"
#include "easydel/esurge/request_document.h"
#include "easydel/esurge/sampling_params.h"

namespace easydel::config {

template const Section& section_of<esurge::EsurgeConfig>();
template const Section& section_of<esurge::GuidedDecoding>();
template const Section& section_of<esurge::RequestDocument>();
template const Section& section_of<esurge::SamplingParams>();

}  // namespace easydel::config
