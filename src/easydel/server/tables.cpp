// The tables of the server's keys.
#include "easydel/config/tables.h"
#include "easydel/server/serve_config.h"

namespace easydel::config {

template const Section& section_of<server::ServeConfig>();

}  // namespace easydel::config
