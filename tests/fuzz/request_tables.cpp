// The tables of other layers' structs that a request contains, and what those layers ask of others in turn. Their own
// files would need whole layers.
#include "easydel/config/tables.h"
#include "easydel/esurge/guided_decoding.h"
#include "easydel/hub/http.h"
#include "easydel/models/parts_config.h"

namespace easydel::config {

template const Section& section_of<esurge::GuidedDecoding>();

}  // namespace easydel::config

namespace easydel::hub {

// For the export of traces, which is off.
Response perform(const Request&) { return {}; }

}  // namespace easydel::hub

namespace easydel::models {

// For generation_config(), which reads the folder of a model; no request does.
Value part_config(const Value& config, const Where&, PartRole) { return config; }

}  // namespace easydel::models
