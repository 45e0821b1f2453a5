// Grammars in the form of llama.cpp (GBNF) to rules.
#pragma once

#include <string_view>

#include "easydel/text/constrain/grammar.h"

namespace easydel::text::constrain {

// The rule named root. UserError "grammar:line:column: ...": not a grammar, a rule that does not exist, no root.
RuleId read_gbnf(std::string_view text, Grammar& grammar);

}  // namespace easydel::text::constrain
