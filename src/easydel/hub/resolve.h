// A model's name into a folder on this machine: a path, or what the local Hugging Face cache holds. Nothing is downloaded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace easydel::hub {

// "~/x" with the home folder put in; other paths as they are.
std::filesystem::path expand_home(std::string_view path);

// HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
std::filesystem::path cache_folder();

// The folder of the cached revision of "owner/name" (refs/<revision>, or the commit itself); nullopt: not cached.
std::optional<std::filesystem::path> cached(std::string_view name, std::string_view revision = "main");

// A folder as given, else the cached model of that name. UserError "where: ..." that says where it was looked for.
std::filesystem::path resolve_model(std::string_view name, const std::string& where);

}  // namespace easydel::hub
