// The tables of other layers' structs that a request contains. Their own tables.cpp would need whole layers.
#include "easydel/config/tables.h"
#include "easydel/esurge/guided_decoding.h"

namespace easydel::config {

template const Section& section_of<esurge::GuidedDecoding>();

}  // namespace easydel::config
