#include "easydel/data/inform_reader.h"

#include <algorithm>
#include <thread>

#include "easydel/base/fetched.h"
#include "easydel/data/inform_files.h"

namespace easydel::data {
namespace {

constexpr size_t rows_at_a_time = 1024;

// Runs prepare() on the rows on all cores.
void prepare_all(std::vector<PreparedRow>& rows, const Prepare& prepare) {
  std::vector<std::exception_ptr> bugs(rows.size());
  const size_t threads = std::clamp<size_t>(rows.size() / 32, 1, std::max(1u, std::thread::hardware_concurrency()));
  const auto work = [&](size_t first) {
    for (size_t i = first; i < rows.size(); i += threads) {
      PreparedRow& one = rows[i];
      if (one.error) continue;
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
  RowBatch(const Prepare& prepare, const std::function<bool(PreparedRow&)>& sink) : prepare_(prepare), sink_(sink) {}

  bool add(PreparedRow row) {
    rows_.push_back(std::move(row));
    return rows_.size() < rows_at_a_time || flush();
  }
  bool add(const UserError& error, bool ends_file = false) {
    PreparedRow row;
    row.ends_file = ends_file;
    row.error = std::make_shared<const UserError>(error);
    return add(std::move(row));
  }
  bool flush() {
    prepare_all(rows_, prepare_);
    for (PreparedRow& row : rows_)
      if (more_) more_ = sink_(row);
    rows_.clear();
    return more_;
  }

 private:
  const Prepare& prepare_;
  const std::function<bool(PreparedRow&)>& sink_;
  std::vector<PreparedRow> rows_;
  bool more_ = true;
};

}  // namespace

InformReader::InformReader(const DatasetOptions& options, size_t index, const Prepare& prepare)
    : inform_(options.informs.at(index)), prepare_(prepare), name_(str(options.section, "[", index, "]")) {
  rules_.content_field = inform_.content_field;
  rules_.target_field = options.target_field;
  rules_.additional_fields = inform_.additional_fields;
  rules_.renames.assign(inform_.format_fields.begin(), inform_.format_fields.end());
  rules_.kind = inform_.row_type;
  rules_.inform = name_;
}

void InformReader::read(const std::function<bool(PreparedRow&)>& sink) {
  RowBatch batch(prepare_, sink);
  int64_t taken = 0;
  bool more = true;
  const auto is_full = [&] { return inform_.num_rows && taken == *inform_.num_rows; };
  ReadOptions options{inform_.sample_by, fields_read(rules_)};
  options.on_bad_row = [&](const UserError& error) {
    if (is_full()) return;
    ++taken;
    more = batch.add(error) && more;
  };
  const auto take = [&](Row row) {
    if (is_full() || !more) return false;
    ++taken;
    PreparedRow typed_row;
    try {
      typed_row.row = typed(std::move(row), rules_);
    } catch (const UserError& error) {
      return more = batch.add(error);
    }
    return more = batch.add(std::move(typed_row));
  };
  for (const auto& file : files_of(inform_, name_ + (is_hub_dataset(inform_) ? ".type" : ".data_files"))) {
    try {
      files::refuse_unfetched(file);
      const FileSource* const reader = reader_of(inform_, file);
      if (!reader)
        refuse(name_ + ".data_files", str("the ending of '", file.string(), "' does not tell its type"),
               "give its type: " + source_names());
      if (!reader->read(file, options, take)) break;
    } catch (const UserError& error) {
      if (!batch.add(error, true)) break;
    }
  }
  batch.flush();
}

}  // namespace easydel::data
