// Keys whose value is a path on this machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/config/problems.h"

namespace easydel::config {

// Replaces a leading ~ by the home folder, and $NAME and ${NAME} by the environment's values. An empty path, another
// user's ~name and a variable that is not set are problems of the key; then the path stays as it is.
void expand_path(std::string& path, Keys& keys, std::string_view key);
void expand_path(std::optional<std::string>& path, Keys& keys, std::string_view key);  // null stays null

}  // namespace easydel::config
