#include "easydel/hub/resolve.h"

#include <algorithm>
#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::hub {
namespace fs = std::filesystem;
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// "owner/name", each part of the letters that the hub allows: not a path.
bool is_hub_name(std::string_view name) {
  const auto allowed = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' || c == '/'; };
  return !name.empty() && name[0] != '/' && name[0] != '.' && std::ranges::count(name, '/') <= 1 && std::ranges::all_of(name, allowed);
}

}  // namespace

fs::path expand_home(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const std::string home = variable("HOME");
  if (home.empty()) return path;
  return path.size() > 2 ? fs::path(home) / path.substr(2) : fs::path(home);
}

fs::path cache_folder() {
  if (const std::string folder = variable("HF_HUB_CACHE"); !folder.empty()) return expand_home(folder);
  if (const std::string home = variable("HF_HOME"); !home.empty()) return expand_home(home) / "hub";
  const std::string cache = variable("XDG_CACHE_HOME");
  return (cache.empty() ? expand_home("~/.cache") : fs::path(cache)) / "huggingface" / "hub";
}

std::optional<fs::path> cached(std::string_view name, std::string_view revision) {
  if (!is_hub_name(name)) return std::nullopt;
  std::string folder = "models--" + std::string(name);
  if (const size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  const fs::path root = cache_folder() / folder;
  std::error_code missing;
  std::string commit(revision);
  if (const fs::path ref = root / "refs" / revision; fs::is_regular_file(ref, missing)) commit = files::read(ref);
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back()))) commit.pop_back();
  const fs::path snapshot = root / "snapshots" / commit;
  if (!fs::is_directory(snapshot, missing)) return std::nullopt;
  return snapshot;
}

fs::path resolve_model(std::string_view name, const std::string& where) {
  const fs::path path = expand_home(name);
  std::error_code missing;
  if (fs::is_directory(path, missing)) return path;
  if (fs::exists(path, missing))
    refuse(where, "'" + std::string(name) + "' is a file, not a model folder", "give the folder that holds config.json and *.safetensors");
  if (const auto found = cached(name)) return *found;
  const std::string cache = is_hub_name(name) ? "; '" + std::string(name) + "' is not in the Hugging Face cache " + cache_folder().string() + " either" : "";
  refuse(where, "'" + std::string(name) + "': no such folder" + cache,
         is_hub_name(name) ? "give a folder with config.json and *.safetensors; downloading is not built yet"
                           : "give a folder with config.json and *.safetensors");
}

}  // namespace easydel::hub
