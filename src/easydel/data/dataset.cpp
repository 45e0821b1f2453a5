#include "easydel/data/dataset.h"

#include <malloc.h>

#include <algorithm>
#include <set>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/fetched.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/data/inform_files.h"
#include "easydel/data/shuffle.h"

namespace easydel::data {
namespace {

constexpr size_t rows_at_a_time = 1024;
constexpr int64_t rows_to_check = 64;  // of each inform

// Runs prepare() on the rows on all cores. Results are in the rows' order; the first error (by row) is thrown.
std::vector<Prepared> prepare_all(const std::vector<TypedRow>& rows, const Prepare& prepare) {
  std::vector<Prepared> out(rows.size());
  std::vector<std::exception_ptr> errors(rows.size());
  const size_t threads = std::clamp<size_t>(rows.size() / 32, 1, std::max(1u, std::thread::hardware_concurrency()));
  const auto work = [&](size_t first) {
    for (size_t i = first; i < rows.size(); i += threads) {
      try {
        out[i] = prepare(rows[i]);
      } catch (...) {
        errors[i] = std::current_exception();
        return;
      }
    }
  };
  std::vector<std::jthread> team;
  for (size_t t = 1; t < threads; ++t) team.emplace_back(work, t);
  work(0);
  team.clear();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  return out;
}

class InformReader {
 public:
  InformReader(const InformConfig& inform, const DatasetOptions& options, size_t index, const Prepare& prepare,
               DatasetReport& report)
      : inform_(inform),
        prepare_(prepare),
        report_(report),
        on_rows_(options.on_rows),
        name_(str(options.section, "[", index, "]")) {
    rules_.content_field = inform.content_field;
    rules_.target_field = options.target_field;
    rules_.additional_fields = inform.additional_fields;
    rules_.renames.assign(inform.format_fields.begin(), inform.format_fields.end());
    rules_.kind = inform.row_type;
    rules_.inform = name_;
  }

  std::vector<Example> read() {
    const ReadOptions options{inform_.sample_by, fields_read(rules_)};
    for (const auto& file : files_of(inform_, name_ + (is_hub_dataset(inform_) ? ".type" : ".data_files"))) {
      files::refuse_unfetched(file);
      const FileSource* const reader = reader_of(inform_, file);
      if (!reader)
        refuse(name_ + ".data_files", str("the ending of '", file.string(), "' does not tell its type"),
               "give its type: " + source_names());
      if (!reader->read(file, options, [&](Row row) { return take(std::move(row)); })) break;
    }
    flush();
    return std::move(examples_);
  }

  void tell() const {
    if (taken_ > 0) log::info(name_, ": ", counted(taken_, "row"), " of ", join(kinds(), ", "));
    if (without_prompt_ == 0) return;
    const std::string what = str(name_, ": ", counted(without_prompt_, "row"),
                                 " without a prompt; what chosen and rejected begin with is taken as the prompt");
    if (unused_texts_.empty()) return log::info(what);
    const std::vector<std::string> unused(unused_texts_.begin(), unused_texts_.end());
    log::warning(what, "; not used: ", join(unused, ", "), " (content_field: ", unused[0],
                 " would make it the prompt)");
  }

 private:
  bool take(Row row) {
    if (inform_.num_rows && taken_ == *inform_.num_rows) return false;
    rows_.push_back(typed(std::move(row), rules_));
    ++taken_;
    if (rows_.size() == rows_at_a_time) flush();
    return true;
  }

  void flush() {
    for (Prepared& one : prepare_all(rows_, prepare_)) {
      ++report_.rows;
      report_.cut_rows += one.cut_tokens > 0;
      report_.cut_tokens += one.cut_tokens;
      if (one.example) {
        examples_.push_back(std::move(*one.example));
      } else {
        ++report_.dropped;
      }
    }
    for (const TypedRow& row : rows_) {
      kinds_.insert(std::string(name_of(row.kind)) + (!row.instruction_text.empty() ? " (instructions)"
                                                      : row.conversational          ? " (conversational)"
                                                                                    : ""));
      without_prompt_ += row.prompt_is_shared;
      unused_texts_.insert(row.unused_texts.begin(), row.unused_texts.end());
    }
    rows_.clear();
    if (on_rows_) on_rows_(report_.rows);
  }

  std::vector<std::string> kinds() const {
    if (kinds_.empty()) return {"nothing"};
    return {kinds_.begin(), kinds_.end()};
  }

  const InformConfig& inform_;
  const Prepare& prepare_;
  DatasetReport& report_;
  const std::function<void(int64_t)>& on_rows_;
  std::string name_;
  FieldRules rules_;
  std::vector<TypedRow> rows_;
  std::vector<Example> examples_;
  std::set<std::string> kinds_;
  std::set<std::string> unused_texts_;
  int64_t taken_ = 0, without_prompt_ = 0;
};

void tell(const DatasetOptions& options, const DatasetReport& report) {
  if (report.cut_rows)
    log::warning(options.section, ": ", report.cut_rows, " of ", counted(report.rows, "row"),
                 report.cut_rows == 1 ? " was" : " were", " longer than max_length and lost ",
                 counted(report.cut_tokens, "token"));
  if (report.dropped)
    log::warning(options.section, ": ", report.dropped, " of ", counted(report.rows, "row"),
                 report.dropped == 1 ? " has no tokens to train on and was dropped"
                                     : " have no tokens to train on and were dropped");
  if (options.packing != Packing::none) log::info(options.section, ": ", report.packing.text());
}

// Documents in the order of the first epoch, so that packed rows mix and shuffle them, too.
std::vector<Example> in_order(std::vector<Example> documents, const EpochOrder& order) {
  const std::vector<int64_t> epoch = order.epoch(0);
  std::vector<int64_t> uses(documents.size(), 0);  // a mixture may repeat some
  for (const int64_t index : epoch) ++uses[size_t(index)];
  std::vector<Example> out;
  out.reserve(epoch.size());
  for (const int64_t index : epoch) {
    Example& document = documents[size_t(index)];
    if (--uses[size_t(index)] > 0)
      out.push_back(document);
    else
      out.push_back(std::move(document));
  }
  return out;
}

[[noreturn]] void refuse_empty(const DatasetOptions& options, const DatasetReport& report) {
  refuse(
      options.section,
      str("there is nothing to train on in ", counted(report.rows, "row"), report.dropped ? " (all were dropped)" : ""),
      "give at least one row with a text, a conversation or an answer");
}

}  // namespace

void check_first_rows(const DatasetOptions& options, const Prepare& prepare) {
  DatasetReport report;
  bool found = false;
  for (size_t i = 0; i < options.informs.size(); ++i) {
    InformConfig inform = options.informs[i];
    inform.num_rows = std::min(inform.num_rows.value_or(rows_to_check), rows_to_check);
    const int64_t before = report.rows;
    found |= !InformReader(inform, options, i, prepare, report).read().empty();
    found |= report.rows - before == rows_to_check;  // later rows may have what these lack
  }
  if (!found) refuse_empty(options, report);
}

Dataset Dataset::build(const DatasetOptions& options, const Prepare& prepare) {
  DatasetReport report;
  std::vector<Example> examples;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < options.informs.size(); ++i) {
    InformReader reader(options.informs[i], options, i, prepare, report);
    auto own = reader.read();
    reader.tell();
    sizes.push_back(int64_t(own.size()));
    std::move(own.begin(), own.end(), std::back_inserter(examples));
  }
  if (examples.empty()) refuse_empty(options, report);
  BlockMixture mixture = options.mixture;
  mixture.weights = options.weights;
  EpochOrder order(sizes, mixture, options.shuffled, options.seed);
  if (options.packing != Packing::none) {
    if (mixture.on || options.shuffle_documents)
      examples = in_order(std::move(examples), EpochOrder(sizes, mixture, options.shuffle_documents, options.seed));
    examples = pack(std::move(examples), options.packing, options.row_length, report.packing);
    order = EpochOrder({int64_t(examples.size())}, {}, options.shuffled, options.seed);
    ::malloc_trim(0);  // gives the memory of the documents back to the system
  }
  tell(options, report);
  return {std::move(examples), std::move(order), report};
}

int64_t Dataset::tokens() const {
  int64_t count = 0;
  for (const int64_t i : epoch(0)) count += int64_t(at(i).tokens.size());
  return count;
}

int64_t Dataset::labels() const {
  int64_t count = 0;
  for (const int64_t i : epoch(0)) count += at(i).labelled();
  return count;
}

int64_t Dataset::longest() const {
  size_t most = 0;
  for (const Example& example : examples_) most = std::max(most, example.tokens.size());
  return int64_t(most);
}

std::string Dataset::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over 32-bit words
  const auto add = [&](uint32_t word) { hash = (hash ^ word) * 0x100000001b3; };
  for (const Example& example : examples_)
    for (const auto* words : {&example.tokens, &example.labels, &example.lengths}) {
      add(uint32_t(words->size()));
      for (const int32_t word : *words) add(uint32_t(word));
    }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace easydel::data
