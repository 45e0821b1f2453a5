#include "easydel/train/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view manifest_name = "manifest.json";

std::optional<int64_t> step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  int64_t step = 0;
  if (!name.starts_with("run-")) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(step) : std::nullopt;
}

// Newest first.
std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.is_directory() && step_of(entry.path())) out.push_back(entry.path());
  std::sort(out.begin(), out.end(), [](const fs::path& a, const fs::path& b) { return *step_of(a) > *step_of(b); });
  return out;
}

void write_manifest(const fs::path& folder) {
  std::vector<fs::path> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), folder));
  std::sort(names.begin(), names.end());
  Value list = Value::map();
  for (const fs::path& name : names) {
    Value one = Value::map();
    one.set("bytes", Value::integer(static_cast<int64_t>(fs::file_size(folder / name))));
    one.set("sha256", Value::text(files::sha256_of_file(folder / name)));
    list.set(name.string(), std::move(one));
  }
  Value manifest = Value::map();
  manifest.set("files", std::move(list));
  files::write(folder / manifest_name, to_json(manifest, 2) + "\n");
  files::sync_directory(folder);
}

}  // namespace

std::string defect_of(const fs::path& checkpoint) {
  if (!fs::exists(checkpoint / manifest_name)) return "it has no manifest.json, so its save did not end";
  try {
    const Value manifest = parse_file(checkpoint / manifest_name);
    const Value* files = manifest.find("files");
    if (!files || !files->is_map()) return "its manifest.json lists no files";
    for (const auto& [name, entry] : files->entries) {
      const fs::path path = checkpoint / name;
      if (!fs::is_regular_file(path)) return str(name, " is missing");
      const Value* bytes = entry.find("bytes");
      if (bytes && bytes->as_int() != static_cast<int64_t>(fs::file_size(path)))
        return str(name, " has ", fs::file_size(path), " bytes, not ", bytes->scalar);
      const Value* hash = entry.find("sha256");
      if (!hash || hash->scalar != files::sha256_of_file(path))
        return str(name, " is not what was written (its hash is different)");
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

Checkpoints::Checkpoints(fs::path folder, std::optional<int64_t> limit) : folder_(std::move(folder)), limit_(limit) {}

fs::path Checkpoints::path_of(int64_t step) const { return folder_ / str("run-", step); }

void Checkpoints::tidy() const {
  std::error_code none;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder_, none))
    if (entry.path().filename().string().starts_with(".run-")) leftovers.push_back(entry.path());
  for (const fs::path& path : leftovers) {
    const fs::path whole = folder_ / path.stem().string().substr(1);
    if (path.extension() == ".old" && !fs::exists(whole)) {
      files::rename(path, whole);
    } else {
      log::info("removing an incomplete checkpoint: ", path.string());
      files::remove_all(path);
    }
  }
}

// By way of another name, so that a removal that is cut short leaves no half checkpoint.
void Checkpoints::remove(const fs::path& checkpoint) const {
  const fs::path aside = folder_ / str(".", checkpoint.filename().string(), ".removed");
  files::remove_all(aside);
  files::rename(checkpoint, aside);
  files::remove_all(aside);
}

fs::path Checkpoints::save(int64_t step, const std::function<void(const fs::path&)>& write) const {
  const fs::path whole = path_of(step), name = str(".", whole.filename().string());
  const fs::path aside = folder_ / str(name.string(), ".partial"), old = folder_ / str(name.string(), ".old");
  files::make_directories(folder_);
  files::remove_all(aside);
  files::make_directories(aside);
  try {
    write(aside);
    write_manifest(aside);
  } catch (...) {
    try {
      files::remove_all(aside);   // on a full disk the room is needed
    } catch (const UserError&) {  // what went wrong first is what is said
    }
    throw;
  }
  if (fs::exists(whole)) {
    files::remove_all(old);
    files::rename(whole, old);
  }
  files::rename(aside, whole);
  files::remove_all(old);
  if (!limit_) return whole;
  // Those of later steps are of another run and nobody's to delete here.
  int64_t kept = 1;
  for (const fs::path& other : runs_in(folder_))
    if (*step_of(other) < step && ++kept > *limit_) remove(other);
  return whole;
}

std::optional<fs::path> Checkpoints::newest() const {
  for (const fs::path& run : runs_in(folder_)) {
    const std::string defect = defect_of(run);
    if (defect.empty()) return run;
    log::warning("skipping checkpoint ", run.string(), ": ", defect);
  }
  return std::nullopt;
}

}  // namespace easydel::train
