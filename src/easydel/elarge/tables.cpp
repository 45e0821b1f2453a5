// The tables of the configuration's sections and of the actions.
#include "easydel/config/tables.h"
#include "easydel/elarge/action_config.h"
#include "easydel/elarge/base_values_config.h"
#include "easydel/elarge/elarge.h"
#include "easydel/elarge/eval_config.h"

namespace easydel::config {

template const Section& section_of<elarge::Config>();
template const Section& section_of<elarge::BaseValues>();
template const Section& section_of<elarge::ModelConfig>();
template const Section& section_of<elarge::LoaderConfig>();
template const Section& section_of<elarge::QuantizationConfig>();
template const Section& section_of<elarge::EvalConfig>();
template const Section& section_of<elarge::GenerateConfig>();
template const Section& section_of<elarge::GenerateAction>();
template const Section& section_of<elarge::PathConfig>();
template const Section& section_of<elarge::PushConfig>();
template const Section& section_of<elarge::EvalActionConfig>();

}  // namespace easydel::config
