#include "easydel/data/save_dataset.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <variant>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/data/columnar.h"
#include "easydel/data/saved_folder.h"

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

// What decides the bytes besides the format and where files begin.
Value description_of(const Dataset& dataset, const SavedExamples& saved, const Table& table) {
  Value out = Value::map(), columns = Value::list();
  for (const std::string& name : table.names()) columns.items.push_back(Value::text(name));
  out.set("data", Value::text(dataset.fingerprint()));
  out.set("method", Value::text(saved.method));
  if (!saved.shifted) out.set("labels_are_shifted", Value::boolean(false));
  out.set("columns", std::move(columns));
  return out;
}

}  // namespace

void check_save(const std::string& where, const SaveConfig& save, const SavedExamples& saved) {
  if (saved.columns.empty() && save.what == SaveWhat::examples)
    refuse(where, "saving what " + saved.method + " learns from is not built yet",
           "set what: rows, or leave the section out");
  check_saved_folder(where, save);
}

std::vector<fs::path> save_dataset(const std::string& where, const Dataset& dataset, const MixtureConfig& mixture,
                                   const SavedExamples& saved) {
  const SaveConfig& save = *mixture.save;
  check_save(where, save, saved);
  const Table table(where, dataset, mixture, saved);
  FileCuts cuts(save);
  for (int64_t i = 0; i < table.rows(); ++i) cuts.add_row(save.num_shards ? 0 : bytes_of_row(save, table, i));
  SavedContent content{cuts.cuts(),
                       features_of(table),
                       description_of(dataset, saved, table),
                       dataset.fingerprint(),
                       "the tokens that " + saved.method + " learns from, a row for each example",
                       {}};
  content.write = [&](const std::vector<fs::path>& files) {
    for (size_t i = 0; i < files.size(); ++i) write_file(files[i], save, table, content.cuts[i], content.cuts[i + 1]);
  };
  return write_saved_folder(where, save, content);
}

}  // namespace easydel::data
