// Errors of a model's config.json that the run's own file causes, because base_config.values replaces the key.
#pragma once

#include <optional>
#include <string>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::elarge {

struct OverriddenKey {
  std::string path;  // "base_config.values.rope_scaling.rope_type"
  Place place;       // in the run's file
};

// The key of base_config.values (`overrides`) that caused the error; nullopt: the error is about another file, or about
// a key that the run does not replace.
std::optional<OverriddenKey> overridden_key(const UserError& error, const Value& overrides);

}  // namespace easydel::elarge
