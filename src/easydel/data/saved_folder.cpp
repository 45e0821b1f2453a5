#include "easydel/data/saved_folder.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>

#include "easydel/base/error.h"
#include "easydel/base/file_listing.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/data/columnar.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

std::string_view word_of(SaveFormat format) {
  for (const auto& choice : choices(format))
    if (choice.value == format) return choice.name;
  return "";
}

// `datasets` names files data-* in a folder that it saved, and train-* in one that it loads by name.
std::string name_of_file(const SaveConfig& save, size_t file, size_t files) {
  char name[64];
  std::snprintf(name, sizeof name, "%s-%05zu-of-%05zu.", save.format == SaveFormat::arrow ? "data" : "train", file,
                files);
  return name + std::string(word_of(save.format));
}

void write_info(const fs::path& folder, const SavedContent& content) {
  Value info = Value::map(), splits = Value::map(), train = Value::map();
  info.set("description", Value::text(""));
  info.set("features", content.features);
  train.set("name", Value::text("train"));
  train.set("num_examples", Value::integer(content.cuts.back()));
  splits.set("train", std::move(train));
  info.set("splits", std::move(splits));
  files::write(folder / "dataset_info.json", to_json(info, 2) + "\n");
}

constexpr std::string_view card_name = "README.md", card_mark = "Written by easydel: ";

// What the hub shows of the dataset, and which files load_dataset() reads. A card that somebody else wrote stays.
void write_card(const fs::path& folder, const SaveConfig& save, const std::string& about) {
  if (files::exists(folder / card_name) && files::read(folder / card_name).find(card_mark) == std::string::npos) return;
  const char* const files_of_train = save.format == SaveFormat::arrow ? "data-*" : "train-*";
  files::write(folder / card_name,
               str("---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: ", files_of_train,
                   "\n---\n", card_mark, about, ".\n"));
}

// The file that load_from_disk() of `datasets` expects in addition to the data and their description.
void write_state(const fs::path& folder, const std::vector<std::string>& files, const std::string& fingerprint) {
  Value names = Value::list(), state = Value::map();
  for (const std::string& file : files) names.items.emplace_back().set("filename", Value::text(file));
  state.set("_data_files", std::move(names));
  state.set("_fingerprint", Value::text(fingerprint));
  state.set("_format_columns", {});
  state.set("_format_kwargs", Value::map());
  state.set("_format_type", {});
  state.set("_output_all_columns", Value::boolean(false));
  state.set("_split", Value::text("train"));
  files::write(folder / "state.json", to_json(state, 2) + "\n");
}

fs::path folder_of(const SaveConfig& save) { return files::canonical(hub::expand_home(*save.output_path)); }

// In the folder of a save: what was saved, and its files with their hashes.
constexpr std::string_view record_name = ".easydel.json";

// Names that a save gives. Everything else in the folder is somebody else's, and stays.
bool is_of_save(const std::string& name) {
  const bool numbered =
      (name.starts_with("train-") || name.starts_with("data-")) && name.find("-of-") != std::string::npos;
  return numbered || name == "state.json" || name == "dataset_info.json" || name == record_name;
}

// What a save would write, as far as it decides the bytes.
Value whole_description(const SaveConfig& save, const SavedContent& content) {
  Value out = content.description, rows = Value::list();
  out.set("format", Value::text(std::string(word_of(save.format))));
  if (is_columnar(save)) out.set("compression", config::Codec<decltype(save.compression)>::write(save.compression));
  for (const int64_t row : content.cuts) rows.items.push_back(Value::integer(row));
  out.set("files_begin_at_rows", std::move(rows));
  return out;
}

void write_record(const fs::path& folder, const Value& description,
                  const std::map<std::string, files::Recorder::Entry>& written) {
  Value record = Value::map();
  record.set("saved", description);
  record.set("files", files::listing_of(written));
  files::write(folder / record_name, to_json(record, 2) + "\n");
}

// Whether the folder holds this save, whole.
bool holds(const fs::path& folder, const Value& description) {
  if (!files::is_file(folder / record_name)) return false;
  Value record;
  try {
    record = parse_json(files::read(folder / record_name));
  } catch (const UserError&) {  // changed by somebody: it is not this save
    return false;
  }
  const Value* const saved = record.find("saved");
  const Value* const list = record.find("files");
  if (!saved || *saved != description || !list || !list->is_map()) return false;
  return files::listing_defect(folder, *list).empty();
}

// A save is written next to its folder and takes its place by two renames; what else was in the folder follows. Each
// step can be the last one of a process.
class Replacement {
 public:
  explicit Replacement(const fs::path& folder)
      : folder_(folder), aside_(beside("partial")), old_(beside("old")), lock_(beside("lock"), folder, "mixture.save") {
    if (files::exists(old_) && !files::exists(folder_)) files::rename(old_, folder_);
    finish();
    files::remove_all(aside_);
  }
  ~Replacement() {
    try {
      files::remove_all(aside_);
    } catch (const UserError& error) {
      log::warning(error.headline());
    }
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  const fs::path& aside() const { return aside_; }

  void commit() {
    if (files::exists(folder_)) files::rename(folder_, old_);
    files::rename(aside_, folder_);
    finish();
  }

 private:
  fs::path beside(const char* ending) const {
    return folder_.parent_path() / str(".", folder_.filename().string(), ".", ending);
  }
  void finish() const {
    for (const fs::path& path : files::list(old_))
      if (const std::string name = path.filename().string(); !is_of_save(name) && !files::exists(folder_ / name))
        files::rename(path, folder_ / name);
    files::remove_all(old_);
  }

  fs::path folder_, aside_, old_;
  files::Lock lock_;
};

}  // namespace

void FileCuts::add_row(int64_t bytes) {
  if (!shards_ && bytes_ > 0 && bytes_ + bytes > most_) {
    begins_.push_back(rows_);
    bytes_ = 0;
  }
  bytes_ += bytes;
  ++rows_;
}

std::vector<int64_t> FileCuts::cuts() const {
  std::vector<int64_t> out = begins_;
  if (shards_) {
    const int64_t files = std::min(*shards_, rows_);
    for (int64_t file = 1; file < files; ++file) out.push_back(rows_ * file / files);
  }
  out.push_back(rows_);
  return out;
}

bool is_columnar(const SaveConfig& save) {
  return save.format == SaveFormat::parquet || save.format == SaveFormat::arrow;
}

hub::PushOptions push_options(const SaveConfig& save) {
  hub::PushOptions options;
  options.repository = save.hub_repo_id.value_or("");
  options.type = hub::RepositoryType::dataset;
  options.is_private = save.hub_private;
  if (save.hub_token) options.settings.token = *save.hub_token;
  return options;
}

void check_saved_folder(const std::string& where, const SaveConfig& save) {
  if (is_columnar(save)) columnar_library();
  // Whether an earlier save holds the same data is known when these have been read.
  if (!save.overwrite && files::exists(folder_of(save)) && !files::is_file(folder_of(save) / record_name))
    refuse(where + ".output_path", "'" + *save.output_path + "' already exists",
           "set overwrite: true, or name another folder");
  if (save.push_to_hub) hub::check_push(where + ".push_to_hub", push_options(save));
}

std::vector<fs::path> write_saved_folder(const std::string& where, const SaveConfig& save,
                                         const SavedContent& content) {
  const fs::path folder = folder_of(save);
  Replacement replacement(folder);
  const size_t count = content.cuts.size() - 1;
  const Value description = whole_description(save, content);
  std::vector<std::string> names;
  for (size_t file = 0; file < count; ++file) names.push_back(name_of_file(save, file, count));
  const auto paths_in = [&](const fs::path& parent) {
    std::vector<fs::path> out;
    for (const std::string& name : names) out.push_back(parent / name);
    return out;
  };
  const bool same = holds(folder, description);
  if (!same) {
    if (!save.overwrite && files::exists(folder))
      refuse(where + ".output_path", "'" + *save.output_path + "' already exists and holds other data",
             "set overwrite: true, or name another folder");
    files::make_directories(replacement.aside());
    std::map<std::string, files::Recorder::Entry> written;
    {
      const files::Recorder recorder(replacement.aside());
      content.write(paths_in(replacement.aside()));
      write_info(replacement.aside(), content);
      if (save.format == SaveFormat::arrow) write_state(replacement.aside(), names, content.fingerprint);
      written = recorder.files();
    }
    write_record(replacement.aside(), description, written);
    replacement.commit();
  }
  log::info(where, ": ", counted(content.cuts.back(), "row"), " in ", count, count == 1 ? " file of " : " files of ",
            folder.string(), same ? ", which were there" : "");
  if (!save.push_to_hub) return paths_in(folder);
  write_card(folder, save, content.about);
  const hub::Pushed pushed = hub::push_folder(where + ".push_to_hub", folder, push_options(save));
  log::info(where, ": ", counted(int64_t(pushed.sent.size()), "file"), " sent to ", *save.hub_repo_id);
  return paths_in(folder);
}

}  // namespace easydel::data
