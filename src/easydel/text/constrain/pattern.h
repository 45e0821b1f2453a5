// Regular expressions as users write them in schemas and on the command line, into automata over characters: the
// regular part of ECMA-262's dialect. Back references, look-around and word boundaries refuse.
#pragma once

#include <string_view>

#include "easydel/text/constrain/char_automaton.h"

namespace easydel::text::constrain {

// UserError "where: ...": not a pattern, not regular, or over a limit.
CharNfa parse_pattern(std::string_view pattern, std::string_view where, Work& work);

}  // namespace easydel::text::constrain
