#include "easydel/data/inform_reader.h"

#include <algorithm>
#include <thread>

#include "easydel/base/fetched.h"
#include "easydel/base/names.h"
#include "easydel/data/inform_files.h"

namespace easydel::data {
namespace {

// Runs prepare() on the rows on `most` threads.
void prepare_all(std::vector<PreparedRow>& rows, const Prepare& prepare, size_t most) {
  std::vector<std::exception_ptr> bugs(rows.size());
  if (most == 0) most = std::max(1u, std::thread::hardware_concurrency());
  const size_t threads = std::clamp<size_t>(rows.size() / 32, 1, most);
  const auto work = [&](size_t first) {
    for (size_t i = first; i < rows.size(); i += threads) {
      PreparedRow& one = rows[i];
      if (one.error || one.skipped) continue;
      try {
        one.prepared = prepare(one.row);
      } catch (const UserError& error) {
        one.error = std::make_shared<const UserError>(error);
      } catch (...) {
        bugs[i] = std::current_exception();
        return;
      }
    }
  };
  std::vector<std::jthread> team;
  for (size_t t = 1; t < threads; ++t) team.emplace_back(work, t);
  work(0);
  team.clear();
  for (const auto& bug : bugs)
    if (bug) std::rethrow_exception(bug);
}

// Collects rows, prepares them together, and gives them in their order.
class RowBatch {
 public:
  RowBatch(const Prepare& prepare, const RowGroups& groups, const std::function<bool(PreparedRow&)>& sink, int64_t skip)
      : prepare_(prepare), groups_(groups), sink_(sink), skip_(skip) {}

  bool add(PreparedRow row) {
    row.skipped = skip_ > 0;
    skip_ -= row.skipped;
    rows_.push_back(std::move(row));
    return rows_.size() < groups_.rows || flush();
  }
  bool add(const UserError& error, bool ends_file = false) {
    PreparedRow row;
    row.ends_file = ends_file;
    row.error = std::make_shared<const UserError>(error);
    return add(std::move(row));
  }
  bool flush() {
    prepare_all(rows_, prepare_, groups_.threads);
    for (PreparedRow& row : rows_)
      if (more_) more_ = sink_(row);
    rows_.clear();
    return more_;
  }

 private:
  const Prepare& prepare_;
  const RowGroups groups_;
  const std::function<bool(PreparedRow&)>& sink_;
  int64_t skip_;  // rows that are still to be skipped
  std::vector<PreparedRow> rows_;
  bool more_ = true;
};

ImageRules image_rules(const InformConfig& inform, const std::string& image_field, const std::string& name) {
  ImageRules out;
  out.fields = {image_field, "image", "images", "jpg", "jpeg", "png", "webp"};
  if (inform.pixel_field) out.fields = {*inform.pixel_field};
  out.is_needed = inform.pixel_field.has_value();
  out.size = inform.image_size;
  out.inform = name;
  return out;
}

}  // namespace

InformReader::InformReader(const DatasetOptions& options, size_t index, const Prepare& prepare)
    : inform_(options.informs.at(index)),
      prepare_(prepare),
      remote_(options.remote),
      groups_{size_t(options.prepare_rows), size_t(options.prepare_threads)},
      evaluation_(options.evaluation),
      name_(str(options.section, "[", index, "]")),
      steps_(inform_, name_, options.tokenize_callback),
      parts_(split_parts(inform_.split, name_ + ".split")) {
  rules_.content_field = inform_.content_field;
  rules_.target_field = options.target_field;
  rules_.additional_fields = inform_.additional_fields;
  rules_.kind = inform_.row_type;
  rules_.tokens_field = options.tokens_field;
  rules_.has_segments = inform_.format && canonical(*inform_.format) == "segments";
  rules_.weight_field = inform_.weight_field;
  rules_.taken = options.kinds;
  rules_.names = options.names;
  rules_.all_columns = options.all_columns;
  rules_.inform = name_;
  if (is_visual(inform_)) images_ = image_rules(inform_, options.image_field, name_);
  if (inform_.roles_to_train.empty() && !inform_.train_on_turns && !inform_.train_on_eos) return;
  LearnRules learn;
  learn.roles = inform_.roles_to_train;
  learn.turns = inform_.train_on_turns.value_or(TrainOnTurns::all);
  learn.eos = inform_.train_on_eos.value_or(TrainOnEos::turn);
  learn_ = std::make_shared<const LearnRules>(std::move(learn));
}

TypedRow InformReader::typed_row(Row row, const std::filesystem::path& file) const {
  std::shared_ptr<const RowImages> images;
  bool is_alone = false;
  if (images_) {
    RowImages found = take_images(row, *images_, file.parent_path());
    is_alone = found.is_alone = !inform_.content_field && !inform_.row_type && !has_text(row.fields, rules_);
    images = std::make_shared<const RowImages>(std::move(found));
  }
  TypedRow out;
  if (is_alone) {
    out.where = row.where, out.text = Value::text("");
    if (rules_.all_columns) out.columns = std::move(row.fields);
  } else {
    out = data::typed(std::move(row), rules_);
  }
  out.images = std::move(images);
  out.learn = learn_;
  out.evaluation = evaluation_;
  for (const auto& [name, value] : inform_.chat_template_args)
    if (!out.template_arguments.is_map() || !out.template_arguments.find(name)) out.template_arguments.set(name, value);
  return out;
}

std::optional<TypedRow> InformReader::typed(Row row, const std::filesystem::path& file) const {
  std::optional<Row> changed = steps_.apply(std::move(row));
  if (!changed) return std::nullopt;
  return typed_row(std::move(*changed), file);
}

ReadOptions InformReader::read_options() const {
  ReadOptions out{inform_.sample_by, steps_.fields(fields_to_read())};
  if (images_) out.raw_fields = image_columns();
  return out;
}

std::vector<std::string> InformReader::image_columns() const {
  std::vector<std::string> out = images_->fields;
  for (const char* messages : {"messages", "conversations", "prompt"}) out.emplace_back(messages);
  return out;
}

std::vector<std::string> InformReader::fields_to_read() const {
  std::vector<std::string> out = fields_read(rules_);
  if (images_ && !out.empty()) out.insert(out.end(), images_->fields.begin(), images_->fields.end());
  return out;
}

std::vector<std::filesystem::path> InformReader::files_of_part(const SplitPart& part) const {
  InformConfig inform = inform_;
  inform.split = part.split;
  return files_of(inform, remote_, name_ + (is_hub_dataset(inform) ? ".type" : ".data_files"));
}

std::vector<std::filesystem::path> InformReader::files() const {
  std::vector<std::filesystem::path> out;
  for (const SplitPart& part : parts_)
    for (std::filesystem::path& file : files_of_part(part)) out.push_back(std::move(file));
  return out;
}

void InformReader::refuse_same_files(const SplitPart& part, const std::vector<std::filesystem::path>& files,
                                     const std::vector<std::filesystem::path>& files_before) const {
  if (files == files_before && part.split != parts_.front().split)
    refuse(name_ + ".split", "these files do not belong to splits, so '" + part.split + "' has no rows of its own",
           "name a folder or a dataset that has splits, or give each file its own inform");
}

const FileSource& InformReader::source_of(const std::filesystem::path& file) const {
  files::refuse_unfetched(file);
  const FileSource* const source = reader_of(inform_, file);
  if (!source)
    refuse(name_ + ".data_files", str("the ending of '", file.string(), "' does not tell its type"),
           "give its type: " + source_names());
  return *source;
}

int64_t InformReader::count(const std::vector<std::filesystem::path>& files) const {
  int64_t given = 0, to_skip = INT64_MAX;
  ReadOptions options{inform_.sample_by, {"__key__"}};
  options.on_bad_row = [&](const UserError&) { ++given; };
  options.rows_to_skip = &to_skip;
  for (const auto& file : files) source_of(file).read(file, options, [&](const Row&) { return ++given, true; });
  return given + (INT64_MAX - to_skip);
}

void InformReader::read(const std::function<bool(PreparedRow&)>& sink) {
  RowBatch batch(prepare_, groups_, sink, skip_);
  int64_t taken = 0;
  bool more = true;
  SplitPart::Range range;
  int64_t to_skip = 0;      // rows of the part before its range, from the next row on
  int64_t row_of_part = 0;  // of the next row, from the range's first one
  const auto is_full = [&] { return inform_.num_rows && taken == *inform_.num_rows; };
  const auto is_outside = [&] {
    if (to_skip > 0) return --to_skip, true;
    return row_of_part++ >= range.last - range.first;
  };
  ReadOptions options = read_options();
  options.rows_to_skip = &to_skip;
  const std::filesystem::path* read_file = nullptr;
  options.on_bad_row = [&](const UserError& error) {
    if (is_outside() || is_full()) return;
    ++taken;
    more = batch.add(error) && more;
  };
  const auto take = [&](Row row) {
    if (is_full() || !more || row_of_part >= range.last - range.first) return false;
    if (is_outside()) return true;
    PreparedRow prepared;
    try {
      std::optional<TypedRow> made = typed(std::move(row), *read_file);
      if (!made) return true;
      prepared.row = std::move(*made);
    } catch (const UserError& error) {
      ++taken;
      return more = batch.add(error);
    }
    ++taken;
    return more = batch.add(std::move(prepared));
  };
  std::vector<std::filesystem::path> files_before;
  for (const SplitPart& part : parts_) {
    const std::vector<std::filesystem::path> files = files_of_part(part);
    refuse_same_files(part, files, files_before);
    files_before = files;
    row_of_part = 0;
    const int64_t rows = part.needs_count() ? count(files) : INT64_MAX;
    range = part.range(rows);
    if (range.first >= range.last)
      refuse(name_ + ".split", str("the slice of '", part.split, "' is empty: there are ", rows, " rows"),
             "choose other boundaries");
    to_skip = range.first;
    for (const auto& file : files) {
      read_file = &file;
      try {
        if (!source_of(file).read(file, options, take)) break;
      } catch (const UserError& error) {
        if (!batch.add(error, true)) break;
      }
    }
    if (part.is_slice() && row_of_part == 0)
      refuse(name_ + ".split",
             str("the slice of '", part.split, "' is empty: there are ", range.first - to_skip, " rows"),
             "choose other boundaries");
    if (is_full() || !more) break;
  }
  batch.flush();
}

Prepare with_images(Prepare prepare) {
  return [prepare = std::move(prepare)](const TypedRow& row) {
    if (!row.images) return prepare(row);
    for (const RowImage& image : row.images->images) decoded(*row.images, image);
    if (!row.images->is_alone) return prepare(row);
    Prepared out;
    out.is_image_alone = true;
    return out;
  };
}

void refuse_images(const MixtureConfig& mixture) {
  const auto check_informs = [](const std::vector<InformConfig>& informs, const char* key, const char* what) {
    for (size_t i = 0; i < informs.size(); ++i)
      if (is_visual(informs[i]))
        refuse("model", str(what, " on images is not built yet"),
               str("mixture.", key, "[", i, "] has images; `easydel data show`, `check` and `stats` read its rows"));
  };
  check_informs(mixture.informs, "informs", "training");
  check_informs(mixture.evaluation, "evaluation", "evaluating");
}

}  // namespace easydel::data
