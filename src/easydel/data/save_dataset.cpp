#include "easydel/data/save_dataset.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <variant>

#include "easydel/base/error.h"
#include "easydel/base/file_listing.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/data/columnar.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

using Lists = std::vector<columnar::NumberList>;

// An example as a row: named lists of numbers.
class Table {
 public:
  Table(const std::string& where, const Dataset& dataset, const MixtureConfig& mixture, const SavedExamples& saved)
      : where_(where), dataset_(dataset), shifted_(saved.shifted) {
    bool packed = false, masked = false, continued = false;
    std::set<std::string_view> given;
    for (int64_t i = 0; i < dataset.examples_count(); ++i) {
      const Example example = dataset.at(i);
      packed |= example.lengths.size() > 1;
      const std::vector<int32_t> labels = example.unshifted_labels(shifted_);
      size_t begin = 0;
      for (const int32_t length : example.lengths) {
        for (size_t k = begin + 1; k < begin + size_t(length); ++k) masked |= labels[k] == no_label;
        begin += size_t(length);
        continued |= shifted_ && length > 0 && example.labels[begin - 1] != no_label;
      }
      for (const SavedColumn& column : saved.columns)
        if (column.when == SavedWhen::given && !column.numbers({example, i + 1, where_, shifted_}).empty())
          given.insert(column.name);
    }
    for (const SavedColumn& column : saved.columns) {
      if (column.when == SavedWhen::with_attention_mask && !mixture.tokenization.return_attention_mask) continue;
      if (column.when == SavedWhen::packed && !packed) continue;
      if (column.when == SavedWhen::masked && !masked) continue;
      if (column.when == SavedWhen::continued && !continued) continue;
      if (column.when == SavedWhen::given && !given.contains(column.name)) continue;
      columns_.push_back(column);
      names_.push_back(column.name.empty() ? mixture.tokenization.output_field : std::string(column.name));
    }
  }
  const std::vector<std::string>& names() const { return names_; }
  std::vector<columnar::WriteOptions::Column> written_columns() const {
    std::vector<columnar::WriteOptions::Column> out;
    for (size_t i = 0; i < columns_.size(); ++i) out.push_back({names_[i], columns_[i].numbers != nullptr});
    return out;
  }
  int64_t rows() const { return dataset_.examples_count(); }

  Lists row(int64_t i) const {
    Lists out;
    const Example example = dataset_.at(i);
    const SavedRow row{example, i + 1, where_, shifted_};
    for (const SavedColumn& column : columns_)
      if (column.numbers)
        out.emplace_back(column.numbers(row));
      else
        out.emplace_back(column.values(row));
    return out;
  }

 private:
  std::string where_;
  const Dataset& dataset_;
  bool shifted_;
  std::vector<SavedColumn> columns_;
  std::vector<std::string> names_;
};

std::string json_row(const Table& table, int64_t i) {
  std::string line = "{";
  const Lists lists = table.row(i);
  for (size_t k = 0; k < lists.size(); ++k) {
    line += str(k ? ", " : "", to_json(Value::text(table.names()[k])), ": [");
    const auto add_numbers = [&](const auto& numbers) {
      char digits[32];
      for (size_t n = 0; n < numbers.size(); ++n) {
        if (n) line += ", ";
        line.append(digits, std::to_chars(digits, digits + sizeof digits, numbers[n]).ptr);
      }
    };
    std::visit(add_numbers, lists[k]);
    line += "]";
  }
  return line + "}";
}

bool is_columnar(const SaveConfig& save) {
  return save.format == SaveFormat::parquet || save.format == SaveFormat::arrow;
}

// Writes rows [begin, end) as one file.
void write_file(const fs::path& file, const SaveConfig& save, const Table& table, int64_t begin, int64_t end) {
  if (is_columnar(save)) {
    const auto form = save.format == SaveFormat::parquet ? columnar::Form::parquet : columnar::Form::arrow;
    const auto writer = columnar_library().write(file, {form, save.compression, table.written_columns()});
    for (int64_t i = begin; i < end; ++i) writer->row(table.row(i));
    return writer->commit();
  }
  const bool list = save.format == SaveFormat::json;
  files::Writer writer(file);
  if (list) writer.write("[");
  for (int64_t i = begin; i < end; ++i) {
    if (list && i > begin) writer.write(",\n");
    writer.write(json_row(table, i));
    if (!list) writer.write("\n");
  }
  if (list) writer.write("]\n");
  writer.commit();
}

// Size of a row before compression.
int64_t bytes_of_row(const SaveConfig& save, const Table& table, int64_t i) {
  if (!is_columnar(save)) return int64_t(json_row(table, i).size()) + 2;
  int64_t bytes = 0;
  for (const columnar::NumberList& list : table.row(i))
    bytes += 4 * std::visit([](const auto& numbers) { return int64_t(numbers.size() + 1); }, list);
  return bytes;
}

// First row of each file, and the number of rows.
std::vector<int64_t> cuts(const SaveConfig& save, const Table& table) {
  const int64_t rows = table.rows();
  std::vector<int64_t> out{0};
  if (save.num_shards) {
    const int64_t files = std::min(*save.num_shards, rows);
    for (int64_t file = 1; file <= files; ++file) out.push_back(rows * file / files);
    return out;
  }
  const int64_t most = *save.shard_bytes();
  for (int64_t i = 0, bytes = 0; i < rows; ++i) {
    const int64_t row = bytes_of_row(save, table, i);
    if (bytes > 0 && bytes + row > most) {
      out.push_back(i);
      bytes = 0;
    }
    bytes += row;
  }
  out.push_back(rows);
  return out;
}

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

// The columns as `datasets` describes them. Its versions before 4 know lists as Sequence, and later ones still do.
Value features_of(const Table& table) {
  Value out = Value::map();
  for (const columnar::WriteOptions::Column& column : table.written_columns()) {
    Value numbers = Value::map(), list = Value::map();
    numbers.set("dtype", Value::text(column.floats ? "float32" : "int32"));
    numbers.set("_type", Value::text("Value"));
    list.set("feature", std::move(numbers));
    list.set("_type", Value::text("Sequence"));
    out.set(column.name, std::move(list));
  }
  return out;
}

void write_info(const fs::path& folder, const Table& table) {
  Value info = Value::map(), splits = Value::map(), train = Value::map();
  info.set("description", Value::text(""));
  info.set("features", features_of(table));
  train.set("name", Value::text("train"));
  train.set("num_examples", Value::integer(table.rows()));
  splits.set("train", std::move(train));
  info.set("splits", std::move(splits));
  files::write(folder / "dataset_info.json", to_json(info, 2) + "\n");
}

constexpr std::string_view card_name = "README.md", card_mark = "Written by easydel: ";

// What the hub shows of the dataset, and which files load_dataset() reads. A card that somebody else wrote stays.
void write_card(const fs::path& folder, const SaveConfig& save, const SavedExamples& saved) {
  if (files::exists(folder / card_name) && files::read(folder / card_name).find(card_mark) == std::string::npos) return;
  const char* const files_of_train = save.format == SaveFormat::arrow ? "data-*" : "train-*";
  files::write(folder / card_name,
               str("---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: ", files_of_train,
                   "\n---\n", card_mark, "the tokens that ", saved.method, " learns from, a row for each example.\n"));
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
Value description_of(const Dataset& dataset, const SaveConfig& save, const SavedExamples& saved, const Table& table,
                     const std::vector<int64_t>& cuts) {
  Value out = Value::map(), columns = Value::list(), rows = Value::list();
  for (const std::string& name : table.names()) columns.items.push_back(Value::text(name));
  out.set("data", Value::text(dataset.fingerprint()));
  out.set("method", Value::text(saved.method));
  if (!saved.shifted) out.set("labels_are_shifted", Value::boolean(false));
  out.set("columns", std::move(columns));
  out.set("format", Value::text(std::string(word_of(save.format))));
  if (is_columnar(save)) out.set("compression", config::Codec<decltype(save.compression)>::write(save.compression));
  for (const int64_t row : cuts) rows.items.push_back(Value::integer(row));
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

hub::PushOptions push_options(const SaveConfig& save) {
  hub::PushOptions options;
  options.repository = save.hub_repo_id.value_or("");
  options.type = hub::RepositoryType::dataset;
  options.is_private = save.hub_private;
  if (save.hub_token) options.settings.token = *save.hub_token;
  return options;
}

void check_save(const std::string& where, const SaveConfig& save, const SavedExamples& saved) {
  if (saved.columns.empty())
    refuse(where, "saving what " + saved.method + " learns from is not built yet", "leave the section out");
  if (is_columnar(save)) columnar_library();
  // Whether an earlier save holds the same data is known when these have been read.
  if (!save.overwrite && files::exists(folder_of(save)) && !files::is_file(folder_of(save) / record_name))
    refuse(where + ".output_path", "'" + *save.output_path + "' already exists",
           "set overwrite: true, or name another folder");
  if (save.push_to_hub) hub::check_push(where + ".push_to_hub", push_options(save));
}

std::vector<fs::path> save_dataset(const std::string& where, const Dataset& dataset, const MixtureConfig& mixture,
                                   const SavedExamples& saved) {
  const SaveConfig& save = *mixture.save;
  check_save(where, save, saved);
  const fs::path folder = folder_of(save);
  Replacement replacement(folder);
  const Table table(where, dataset, mixture, saved);
  const std::vector<int64_t> at = cuts(save, table);
  const size_t count = at.size() - 1;
  const Value description = description_of(dataset, save, saved, table, at);
  std::vector<std::string> names;
  for (size_t file = 0; file < count; ++file) names.push_back(name_of_file(save, file, count));
  const bool same = holds(folder, description);
  if (!same) {
    if (!save.overwrite && files::exists(folder))
      refuse(where + ".output_path", "'" + *save.output_path + "' already exists and holds other data",
             "set overwrite: true, or name another folder");
    files::make_directories(replacement.aside());
    std::map<std::string, files::Recorder::Entry> written;
    {
      const files::Recorder recorder(replacement.aside());
      for (size_t file = 0; file < count; ++file)
        write_file(replacement.aside() / names[file], save, table, at[file], at[file + 1]);
      write_info(replacement.aside(), table);
      if (save.format == SaveFormat::arrow) write_state(replacement.aside(), names, dataset.fingerprint());
      written = recorder.files();
    }
    write_record(replacement.aside(), description, written);
    replacement.commit();
  }
  log::info(where, ": ", counted(at.back(), "row"), " in ", count, count == 1 ? " file of " : " files of ",
            folder.string(), same ? ", which were there" : "");
  std::vector<fs::path> out;
  for (const std::string& name : names) out.push_back(folder / name);
  if (!save.push_to_hub) return out;
  write_card(folder, save, saved);
  const hub::Pushed pushed = hub::push_folder(where + ".push_to_hub", folder, push_options(save));
  log::info(where, ": ", counted(int64_t(pushed.sent.size()), "file"), " sent to ", *save.hub_repo_id);
  return out;
}

}  // namespace easydel::data
