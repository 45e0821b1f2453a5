// Resolves a model's name to a local folder: a path is returned as it is, a hub name is downloaded into the cache.
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

enum class ModelFiles : uint8_t {
  all,          // with the weights
  description,  // config, tokenizer, templates: enough for the checks before a run
};

// An existing folder is returned as given, otherwise the hub's model of that name is fetched. UserError "where: ..."
// says where it was searched.
std::filesystem::path resolve_model(std::string_view name, const std::string& where, std::string_view revision = "main",
                                    ModelFiles files = ModelFiles::all);

// The same for a dataset, with only the files that `filter` accepts (by path in the repository; not called if the hub
// cannot be reached).
std::filesystem::path resolve_dataset(std::string_view name, const std::string& where,
                                      const std::function<bool(std::string_view file)>& filter,
                                      std::string_view revision = "main");

// Where the hub has a file of a dataset.
std::string address_of_dataset_file(std::string_view name, std::string_view file, std::string_view revision);

// The folder or file of a tokenizer; for a hub name the folder that its files are in.
std::filesystem::path resolve_tokenizer(std::string_view name);

// True if resolve_model would search `name` on the hub: it is not an existing path and has the form of a hub name.
bool is_on_hub(std::string_view name);

}  // namespace easydel::hub
