#include "easydel/data/saved_rows.h"

#include <algorithm>
#include <functional>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/base/sha256.h"
#include "easydel/data/columnar.h"
#include "easydel/data/inform_examples.h"
#include "easydel/data/row_schema.h"
#include "easydel/data/saved_folder.h"
#include "easydel/text/tokenizers/charsmap.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* images_of_messages = "images";  // their column

using TakeRow = std::function<void(const Value& fields, const std::string& where)>;

// Gives the rows of the informs, with their images.
class RowTarget final : public ExampleTarget {
 public:
  // `options`: those of the run.
  RowTarget(const DatasetOptions& options, TakeRow sink) : options_(options), sink_(std::move(sink)) {}

  void add(const Example& /*example*/, int64_t /*row*/) override {}
  void take(const TypedRow& row, size_t inform) override {
    Value fields = row.columns;
    const InformConfig& config = options_.informs[inform];
    // A format empties the fields of other kinds.
    if (config.format) std::erase_if(fields.entries, [](const auto& entry) { return entry.second.is_null(); });
    if (config.content_field && !options_.all_columns) keep_content(fields, row.kind, config);
    if (row.images) add_images(fields, *row.images);
    sink_(fields, row.where);
  }

 private:
  // content_field is there under its standard name, too.
  void keep_content(Value& fields, RowKind kind, const InformConfig& inform) const {
    std::vector<std::string> kept = inform.additional_fields;
    if (kind == RowKind::text || kind == RowKind::messages) {
      for (const char* name : {"tools", "chat_template_kwargs"}) kept.emplace_back(name);
      kept.push_back(kind == RowKind::text ? options_.target_field : "messages");
      if (inform.weight_field) kept.push_back(*inform.weight_field);
    } else {
      for (const auto& [name, value] : fields.entries)
        if (name != *inform.content_field || name == "prompt") kept.push_back(name);
    }
    std::erase_if(fields.entries,
                  [&](const auto& entry) { return std::ranges::find(kept, entry.first) == kept.end(); });
  }

  static void add_images(Value& fields, const RowImages& row) {
    Value images = Value::list();
    for (const RowImage& image : row.images) {
      Value& one = images.items.emplace_back(Value::map());
      one.set("bytes", Value::text(image_file(row, image)));
      // As `datasets` does: a folder of this machine is nothing to tell others.
      one.set("path", image.has_path ? Value::text(fs::path(image.name).filename().string()) : Value{});
    }
    const bool is_one = !row.field.empty() && !row.field_is_list && images.items.size() == 1;
    fields.set(row.field.empty() ? images_of_messages : row.field, is_one ? images.items[0] : std::move(images));
  }

  const DatasetOptions& options_;
  TakeRow sink_;
};

void read_rows(const DatasetOptions& options, const Prepare& prepare, const TakeRow& sink) {
  DatasetOptions whole = options;
  whole.all_columns = true, whole.keep_origins = false, whole.on_rows = {};
  RowTarget target(options, sink);
  ReadExamples read;
  const log::Quiet quiet;  // what there is to say was said when the examples were made
  // Without it only rows that cannot be read are bad, and the first bad one ends the run.
  const Prepare nothing = [](const TypedRow&) { return Prepared(); };
  read_examples(whole, options.bad_rows.skip ? prepare : nothing, target, read);
}

std::vector<std::string> image_columns(const DatasetOptions& options) {
  std::set<std::string> out;
  for (const InformConfig& inform : options.informs)
    if (is_visual(inform))
      out.insert({inform.pixel_field.value_or(options.image_field), "image", images_of_messages, "jpg", "jpeg", "png",
                  "webp"});
  return {out.begin(), out.end()};
}

// For files of text.
Value with_base64(const Value& fields, const std::vector<std::string>& images) {
  Value out = fields;
  const auto encode = [](Value& image) {
    if (Value* const bytes = image.find("bytes")) *bytes = Value::text(text::encode_base64(bytes->scalar));
  };
  for (const std::string& name : images)
    if (Value* const column = out.find(name)) {
      encode(*column);
      for (Value& image : column->items) encode(image);
    }
  return out;
}

std::string csv_field(const Value& value) {
  if (value.is_null()) return "";
  if (!value.is_text()) return value.scalar;
  std::string out = "\"";
  for (const char c : value.scalar) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// A file of rows in any of the formats.
class RowFile {
 public:
  RowFile(const fs::path& file, const SaveConfig& save, const RowSchema& schema, std::vector<std::string> images)
      : format_(save.format), schema_(schema), images_(std::move(images)) {
    if (is_columnar(save)) {
      Value features = Value::map(), info = Value::map();
      features.set("features", schema.features());
      info.set("info", std::move(features));
      const auto form = save.format == SaveFormat::parquet ? columnar::Form::parquet : columnar::Form::arrow;
      columns_ = columnar_library().write_rows(file, {form, save.compression, schema.columns(), to_json(info)});
      return;
    }
    text_ = std::make_unique<files::Writer>(file);
    if (format_ == SaveFormat::json) text_->write("[");
    if (format_ == SaveFormat::csv) {
      std::vector<std::string> names;
      for (const auto& [name, type] : schema.columns()) names.push_back(csv_field(Value::text(name)));
      text_->write(join(names, ",") + "\n");
    }
  }

  void row(const Value& fields) {
    if (columns_) return columns_->row(fields);
    if (format_ == SaveFormat::csv) return text_->write(csv_line(fields));
    if (format_ == SaveFormat::json && rows_++ > 0) text_->write(",\n");
    text_->write(to_json(images_.empty() ? fields : with_base64(fields, images_)));
    if (format_ == SaveFormat::jsonl) text_->write("\n");
  }

  void commit() {
    if (columns_) return columns_->commit();
    if (format_ == SaveFormat::json) text_->write("]\n");
    text_->commit();
  }

 private:
  std::string csv_line(const Value& fields) const {
    std::vector<std::string> values;
    for (const auto& [name, type] : schema_.columns()) {
      const Value* const value = fields.find(name);
      values.push_back(value ? csv_field(*value) : "");
    }
    // An empty line would be no row.
    const bool is_empty = std::ranges::all_of(values, [](const std::string& value) { return value.empty(); });
    return (is_empty && values.size() == 1 ? "\"\"" : join(values, ",")) + "\n";
  }

  SaveFormat format_;
  const RowSchema& schema_;
  std::vector<std::string> images_;
  std::unique_ptr<columnar::RowWriter> columns_;
  std::unique_ptr<files::Writer> text_;
  int64_t rows_ = 0;
};

int64_t bytes_of(const Value& value) {
  auto out = int64_t(value.scalar.size()) + 2;
  for (const Value& item : value.items) out += bytes_of(item);
  for (const auto& [name, part] : value.entries) out += int64_t(name.size()) + 2 + bytes_of(part);
  return out;
}

void add_to(files::Sha256& digest, const Value& fields) {
  const std::string text = to_json(fields) + "\n";
  digest.add(text.data(), text.size());
}

}  // namespace

std::vector<fs::path> save_rows(const std::string& where, const DatasetOptions& options, const Prepare& prepare,
                                const MixtureConfig& mixture, const std::string& method) {
  const SaveConfig& save = *mixture.save;
  check_saved_folder(where, save);
  const std::vector<std::string> images = image_columns(options);
  RowSchema schema(images);
  FileCuts cuts(save);
  files::Sha256 first_digest, second_digest;
  read_rows(options, prepare, [&](const Value& fields, const std::string& row) {
    schema.add(fields, row);
    cuts.add_row(bytes_of(fields));
    add_to(first_digest, fields);
  });
  if (cuts.cuts().back() == 0) refuse(where, "there are no rows to save", "look at the informs' filters");
  if (const std::string column = schema.nested_column(); save.format == SaveFormat::csv && !column.empty())
    refuse(where + ".format", "csv cannot hold the field '" + column + "', which is not a text or a number in each row",
           "choose parquet, arrow, json or jsonl");

  SavedContent content{
      cuts.cuts(), schema.features(), Value::map(), first_digest.hex(), "the rows that " + method + " learns from", {}};
  content.description.set("data", Value::text(content.fingerprint));
  content.description.set("what", Value::text("rows"));
  content.write = [&](const std::vector<fs::path>& paths) {
    const auto refuse_changed = [&] {
      refuse(where, "the rows changed while they were saved", "do not change the files while they are read");
    };
    int64_t row = 0;
    size_t file = 0;
    std::unique_ptr<RowFile> open;
    read_rows(options, prepare, [&](const Value& fields, const std::string& /*where*/) {
      if (row == content.cuts.back()) refuse_changed();
      if (!open) open = std::make_unique<RowFile>(paths[file], save, schema, images);
      add_to(second_digest, fields);
      open->row(fields);
      if (++row < content.cuts[file + 1]) return;
      open->commit();
      open.reset();
      ++file;
    });
    if (row != content.cuts.back() || second_digest.hex() != content.fingerprint) refuse_changed();
  };
  return write_saved_folder(where, save, content);
}

void save_data(const std::string& where, const DatasetOptions& options, const Prepare& prepare, const Dataset& dataset,
               const MixtureConfig& mixture, const SavedExamples& saved) {
  if (mixture.save->what == SaveWhat::rows)
    save_rows(where, options, prepare, mixture, saved.method);
  else
    save_dataset(where, dataset, mixture, saved);
}

}  // namespace easydel::data
