// How a format writes calls, piece by piece, as its chat templates show them: what a constrained answer consists of.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "easydel/text/constrain/argument_notation.h"

namespace easydel::text {

struct CallShape {
  // Each piece may be the spelling of a special token.
  using Pieces = std::vector<std::string_view>;
  Pieces open = {};         // before the first call
  Pieces before_name = {};  // of each call
  Pieces after_name = {};
  Pieces after_arguments = {};
  Pieces between = {};  // two calls
  Pieces close = {};    // after the last call
  bool several = true;  // an answer may have several calls
  // After the name: ":" and the number of the call, from 0.
  bool numbered = false;
  std::optional<constrain::ArgumentNotation> arguments = {};  // nullopt: they are a JSON object
};

// Null: the format cannot be constrained.
const CallShape* find_call_shape(std::string_view format);

}  // namespace easydel::text
