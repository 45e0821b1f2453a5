// Errors of a model's config.json that the run's own file causes, because base_config.values replaces the key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/document.h"

namespace easydel::elarge {

struct OverrideError {
  std::string path;  // "base_config.values.rope_scaling.rope_type"
  Place place;
  std::string what, remedy;
};

// `text` is a UserError's, ".../config.json: rope_scaling: rope_type: what\n    remedy"; nullopt: `overrides` has no
// such key.
std::optional<OverrideError> override_error(std::string_view text, const Value& overrides);

}  // namespace easydel::elarge
