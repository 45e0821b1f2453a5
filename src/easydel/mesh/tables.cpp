// The tables of this layer's config structs.
#include "easydel/config/tables.h"
#include "easydel/mesh/partition_axis.h"

namespace easydel::config {

template const Section& section_of<mesh::PartitionAxis>();

}  // namespace easydel::config
