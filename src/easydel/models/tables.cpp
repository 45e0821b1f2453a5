// The table of the section `lora`.
#include "easydel/config/tables.h"
#include "easydel/models/lora_config.h"

namespace easydel::config {

template const Section& section_of<models::LoftqConfig>();
template const Section& section_of<models::LoraConfig>();

}  // namespace easydel::config
