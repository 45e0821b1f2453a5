#include "easydel/train/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/file_listing.h"
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

// Newest first. Whatever has such a name: what is wrong with it is found when it is looked into.
std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const fs::path& path : files::list(folder))
    if (step_of(path)) out.push_back(path);
  std::sort(out.begin(), out.end(), [](const fs::path& a, const fs::path& b) { return *step_of(a) > *step_of(b); });
  return out;
}

void write_manifest(const fs::path& folder, const std::map<std::string, files::Recorder::Entry>& written) {
  for (const auto& [name, entry] : written)
    if (!files::is_file(folder / name) || files::size(folder / name) != entry.bytes)
      refuse((folder / name).string(), "was changed while it was saved", "another program writes into this folder");
  Value manifest = Value::map();
  manifest.set("files", files::listing_of(written));
  files::write(folder / manifest_name, to_json(manifest, 2) + "\n");
  files::sync_directory(folder);
}

struct Defect {
  std::string text;
  bool unreadable = false;  // the disk, not the content
};

Defect find_defect(const fs::path& checkpoint, const Checkpoints::Inspect& inspect) {
  std::string text;
  try {
    if (!files::exists(checkpoint / manifest_name)) return {"it has no manifest.json, so its save did not end"};
    text = files::read(checkpoint / manifest_name);
  } catch (const UserError& error) {
    return {error.headline(), true};
  }
  Value manifest;
  try {
    manifest = parse_json(text, (checkpoint / manifest_name).string());
  } catch (const std::exception& error) {
    return {error.what()};
  }
  const Value* const entries = manifest.find("files");
  if (!entries || !entries->is_map()) return {"its manifest.json lists no files"};
  try {
    if (std::string defect = files::listing_defect(checkpoint, *entries); !defect.empty()) return {std::move(defect)};
  } catch (const UserError& error) {
    return {error.headline(), true};
  }
  std::set<std::string> listed;
  for (const auto& [name, entry] : entries->entries) listed.insert(name);
  try {
    return {inspect ? inspect(checkpoint, listed) : ""};
  } catch (const UserError& error) {
    return {error.headline()};
  }
}

}  // namespace

std::string defect_of(const fs::path& checkpoint) { return find_defect(checkpoint, {}).text; }

Checkpoints::Checkpoints(fs::path folder, std::optional<int64_t> limit, Inspect inspect)
    : folder_(std::move(folder)), limit_(limit), inspect_(std::move(inspect)) {}

fs::path Checkpoints::path_of(int64_t step) const { return folder_ / str("run-", step); }

fs::path Checkpoints::diverged_path(int64_t step) const { return folder_ / str("run-", step, ".diverged"); }

void Checkpoints::lock() {
  if (!lock_) lock_ = std::make_shared<files::Lock>(folder_ / ".lock", folder_, "this run");
}

void Checkpoints::tidy() const {
  for (const fs::path& path : files::list(folder_)) {
    const std::string name = path.filename().string();
    const bool of_save = name.starts_with(".run-");
    if (!of_save && !(name.starts_with('.') && name.ends_with(".partial") && files::is_file(path))) continue;
    const fs::path whole = folder_ / path.stem().string().substr(1);
    if (of_save && path.extension() == ".old" && !files::exists(whole)) {
      files::rename(path, whole);
    } else {
      if (of_save) log::info("removing an incomplete checkpoint: ", path.string());
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

void Checkpoints::write_whole(const fs::path& whole, const std::function<void(const fs::path&)>& write) const {
  const fs::path name = str(".", whole.filename().string());
  const fs::path aside = folder_ / str(name.string(), ".partial"), old = folder_ / str(name.string(), ".old");
  files::make_directories(folder_);
  files::remove_all(aside);
  files::make_directories(aside);
  try {
    std::map<std::string, files::Recorder::Entry> written;
    {
      const files::Recorder recorder(aside);
      write(aside);
      written = recorder.files();
    }
    write_manifest(aside, written);
  } catch (...) {
    try {
      files::remove_all(aside);   // a full disk needs the space
    } catch (const UserError&) {  // the first error is the one to report
    }
    throw;
  }
  if (files::is_link(whole) || files::exists(whole)) {
    files::remove_all(old);
    files::rename(whole, old);
  }
  files::rename(aside, whole);
  files::remove_all(old);
}

fs::path Checkpoints::save(int64_t step, const std::function<void(const fs::path&)>& write) const {
  const fs::path whole = path_of(step);
  write_whole(whole, write);
  prune(step);
  return whole;
}

void Checkpoints::prune(int64_t step) const {
  if (!limit_) return;
  try {
    // Checkpoints of later steps belong to another run, so they stay.
    int64_t kept = 1;
    for (const fs::path& other : runs_in(folder_))
      if (const int64_t found = *step_of(other); found < step && found != protected_ && ++kept > *limit_) remove(other);
  } catch (const UserError& error) {
    log::warning("old checkpoints beyond save_total_limit could not be deleted: ", error.headline());
  }
}

void Checkpoints::save_diverged(int64_t step, const std::function<void(const fs::path&)>& write) const {
  write_whole(diverged_path(step), write);
}

// First the checkpoint goes to a name that no run resumes from; if the process is killed after that, tidy() gives it
// its last name.
void Checkpoints::rename_diverged(int64_t step) const {
  const fs::path whole = diverged_path(step), aside = folder_ / str(".", whole.filename().string(), ".old");
  files::remove_all(aside);
  files::rename(path_of(step), aside);
  if (files::is_link(whole) || files::exists(whole)) remove(whole);
  files::rename(aside, whole);
}

std::optional<fs::path> Checkpoints::newest() const {
  std::string unreadable;
  for (const fs::path& run : runs_in(folder_)) {
    const Defect defect = find_defect(run, inspect_);
    if (defect.text.empty()) return run;
    log::warning("skipping checkpoint ", run.string(), ": ", defect.text);
    if (defect.unreadable && unreadable.empty()) unreadable = defect.text;
  }
  if (!unreadable.empty())
    refuse(folder_.string(), "no checkpoint in this folder can be read (" + unreadable + ")",
           "make them readable, name another save_directory, or set resume_if_possible: false to start anew");
  return std::nullopt;
}

std::optional<fs::path> Checkpoints::last() const {
  const std::vector<fs::path> runs = runs_in(folder_);
  return runs.empty() ? std::nullopt : std::optional(runs.front());
}

}  // namespace easydel::train
