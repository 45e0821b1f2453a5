// JSON schemas to rules.
#pragma once

#include <string_view>

#include "easydel/text/constrain/argument_notation.h"
#include "easydel/text/constrain/grammar.h"
#include "easydel/text/constrain/json_strings.h"

namespace easydel::text::constrain {

// The rule of the values that a schema describes. UserError "JSON schema at /pointer: ...".
RuleId read_schema(std::string_view json, const ValueForm& form, Grammar& grammar);
// The rule of the arguments that a schema describes.
RuleId read_arguments(std::string_view json, const ArgumentNotation& notation, Grammar& grammar);
// The rule of all JSON objects.
RuleId any_object(const ValueForm& form, Grammar& grammar);

}  // namespace easydel::text::constrain
