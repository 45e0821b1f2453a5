#include "easydel/hub/resolve.h"

#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/hub/repository.h"

namespace easydel::hub {
namespace fs = std::filesystem;
namespace {

constexpr int64_t min_reported_bytes = 32 << 20;  // larger files report every tenth of their bytes

// Logs the start of each file, and the progress of large ones.
Progress telling(bool told) {
  if (!told) return {};
  return [last = std::string(), tenth = int64_t{0}](std::string_view file, int64_t done, int64_t total) mutable {
    if (file != last) {
      last = file;
      tenth = 0;
      log::info("fetching ", file, total > 0 ? str(" (", (total + (1 << 20) - 1) >> 20, " MiB)") : "");
    }
    if (total < min_reported_bytes || done * 10 / total <= tenth) return;
    tenth = done * 10 / total;
    log::info("fetching ", file, ": ", tenth * 10, " %");
  };
}

bool ends_with_any(std::string_view file, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return file.ends_with(ending); });
}

bool has_file(const fs::path& folder, std::string_view ending) {
  return std::ranges::any_of(files::list(folder),
                             [&](const fs::path& path) { return path.filename().string().ends_with(ending); });
}

bool describes(std::string_view file) {
  return ends_with_any(file, {".json", ".jinja", ".txt", ".model", ".tiktoken", ".vocab"});
}

}  // namespace

std::optional<fs::path> cached(std::string_view name, std::string_view revision) {
  if (!is_hub_name(name)) return std::nullopt;
  return Repository("hub", std::string(name), RepositoryType::model, std::string(revision)).cached_snapshot();
}

std::string address_of_dataset_file(std::string_view name, std::string_view file, std::string_view revision) {
  return Repository("hub", std::string(name), RepositoryType::dataset, std::string(revision)).url(file);
}

bool is_on_hub(std::string_view name) { return is_hub_name(name) && !files::exists(expand_home(name)); }

fs::path resolve_tokenizer(std::string_view name) {
  return is_on_hub(name) ? resolve_model(name, "tokenizer") : expand_home(name);
}

fs::path resolve_model(std::string_view name, const std::string& where, std::string_view revision, ModelFiles files) {
  const fs::path path = expand_home(name);
  if (files::is_folder(path)) return path;
  if (path.extension() == ".gguf" && files::exists(path)) return path;
  if (files::exists(path))
    refuse(where, "'" + std::string(name) + "' is a file, not a model folder",
           "give the folder that holds config.json and *.safetensors, or a .gguf file");
  if (!is_hub_name(name))
    refuse(where, "'" + std::string(name) + "': no such folder",
           "give a folder with config.json and *.safetensors, or a name on the Hugging Face Hub");
  // A word without an owner is more likely a missing folder: only the cache is searched.
  const Settings now = settings();
  Repository repository(where, std::string(name), RepositoryType::model, std::string(revision), now);
  if (name.find('/') == std::string_view::npos) {
    if (const auto found = repository.cached_snapshot()) return *found;
    refuse(where, "'" + std::string(name) + "': no such folder, nor in the cache " + now.cache.string(),
           "give a folder, or a name on the Hugging Face Hub as 'owner/name'");
  }
  const auto takes = [&](std::string_view file) {
    if (file.find('/') != std::string_view::npos) return false;  // subfolders hold other formats of the same weights
    return describes(file) || (files == ModelFiles::all && file.ends_with(".safetensors"));
  };
  const fs::path snapshot = repository.fetch_all(takes, telling(now.progress));
  if (files != ModelFiles::all || has_file(snapshot, ".safetensors")) return snapshot;
  // Older models have their weights only in torch's own files.
  const auto takes_old = [&](std::string_view file) {
    return file.starts_with("pytorch_model") && file.ends_with(".bin");
  };
  return repository.fetch_all([&](std::string_view file) { return takes(file) || takes_old(file); },
                              telling(now.progress));
}

fs::path resolve_dataset(std::string_view name, const std::string& where,
                         const std::function<bool(std::string_view file)>& filter, std::string_view revision) {
  const fs::path path = expand_home(name);
  if (files::is_folder(path)) return path;
  const Settings now = settings();
  Repository repository(where, std::string(name), RepositoryType::dataset, std::string(revision), now);
  return repository.fetch_all(filter, telling(now.progress));
}

}  // namespace easydel::hub
