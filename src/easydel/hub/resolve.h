// A model's name into a folder on this machine: a path as it is, a name of the hub from the cache or fetched into it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/hub/settings.h"

namespace easydel::hub {

// The folder of the cached revision of "owner/name" (refs/<revision>, or the commit itself); nullopt: not cached.
std::optional<std::filesystem::path> cached(std::string_view name, std::string_view revision = "main");

enum class Wanted : uint8_t {
  all,          // weights too
  description,  // config, tokenizer, templates: what can be checked before anything is computed
};

// A folder as given, else the hub's model of that name. UserError "where: ..." that says where it was looked for.
std::filesystem::path resolve_model(std::string_view name, const std::string& where, std::string_view revision = "main",
                                    Wanted wanted = Wanted::all);

// The same of a data set: those of its files that `wanted` lets through (it is asked for each, by its path in the
// repository, where the hub can be reached).
std::filesystem::path resolve_dataset(std::string_view name, const std::string& where,
                                      const std::function<bool(std::string_view file)>& wanted,
                                      std::string_view revision = "main");

// Whether resolve_model would look for `name` on the hub: it is no path here, and has the form of a hub's name.
bool is_on_hub(std::string_view name);

}  // namespace easydel::hub
