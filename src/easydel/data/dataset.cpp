#include "easydel/data/dataset.h"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/data/inform_reader.h"
#include "easydel/data/shuffle.h"

namespace easydel::data {
namespace {

constexpr int64_t rows_to_check = 64;  // of each inform
constexpr size_t skipped_rows_in_log = 20;
constexpr const char* row_column = "row";
constexpr int64_t rows_before_further = 1000;  // as TRL unpairs: see Prepared::further

// Makes the examples of an inform and notes what is worth telling about its rows.
class InformExamples {
 public:
  InformExamples(const DatasetOptions& options, size_t index, const Prepare& prepare, ReadExamples& out)
      : options_(options),
        index_(index),
        reader_(options, index, prepare),
        out_(out),
        report_(out.report),
        origins_(out.origins) {}

  // Returns how many there are.
  int64_t read() {
    reader_.read([&](PreparedRow& row) {
      take(row);
      return true;
    });
    add_further();
    if (options_.on_rows) options_.on_rows(report_.rows);
    return examples_;
  }

  void tell() const {
    if (taken_ > 0) log::info(reader_.name(), ": ", counted(taken_, "row"), " of ", join(kinds(), ", "));
    if (without_prompt_ == 0) return;
    const std::string what = str(reader_.name(), ": ", counted(without_prompt_, "row"),
                                 " without a prompt; what chosen and rejected begin with is taken as the prompt");
    if (unused_texts_.empty()) return log::info(what);
    const std::vector<std::string> unused(unused_texts_.begin(), unused_texts_.end());
    log::warning(what, "; not used: ", join(unused, ", "), " (content_field: ", unused[0],
                 " would make it the prompt)");
  }

 private:
  void take(PreparedRow& one) {
    if (one.error && one.ends_file) throw *one.error;
    if (one.error) return skip(*one.error);
    const TypedRow& row = one.row;
    if (repeats(row)) return;
    ++taken_;
    ++report_.rows;
    if (options_.on_rows && report_.rows % 1024 == 0) options_.on_rows(report_.rows);
    report_.cut_rows += one.prepared.cut_tokens > 0;
    report_.cut_tokens += one.prepared.cut_tokens;
    kinds_.insert(std::string(name_of(row.kind)) + (!row.instruction_text.empty() ? " (instructions)"
                                                    : row.conversational          ? " (conversational)"
                                                                                  : ""));
    without_prompt_ += row.prompt_is_shared;
    unused_texts_.insert(row.unused_texts.begin(), row.unused_texts.end());
    for (Example& example : one.prepared.further) further_.push_back({std::move(example), row.where});
    if (one.prepared.example)
      add(std::move(*one.prepared.example), row.where);
    else if (one.prepared.too_long)
      ++report_.too_long;
    else if (one.prepared.further.empty())
      ++report_.dropped;
    if (taken_ % rows_before_further == 0) add_further();
  }

  void add(Example example, const std::string& where) {
    if (options_.keep_origins) {
      const auto row = int64_t(origins_.size());
      example.set({row_column, Column::Per::sequence, std::vector<int64_t>(example.lengths.size(), row)});
      origins_.push_back({index_, where});
    }
    out_.examples.add(example);
    ++examples_;
  }

  void add_further() {
    for (Further& one : further_) add(std::move(one.example), one.where);
    further_.clear();
  }

  // Whether the row is left out because it repeats another one, or evaluation data.
  bool repeats(const TypedRow& row) {
    if (options_.deduplicate && !out_.seen.insert(digest_of_words(row)).second) {
      ++report_.copies;
      return true;
    }
    if (!out_.repeated || !out_.repeated->shares(row)) return false;
    ++report_.contaminated;
    return options_.decontamination->drop;
  }

  void skip(const UserError& error) {
    if (!options_.bad_rows.skip) throw error;
    if (options_.bad_rows.most && report_.skipped == *options_.bad_rows.most)
      refuse(Where(error.place, error.where),
             str("is bad row ", report_.skipped + 1, ", and mixture.max_bad_rows is ", *options_.bad_rows.most, ": ",
                 error.problem),
             "`easydel data check` lists all bad rows; repair them, or raise mixture.max_bad_rows");
    ++report_.skipped;
    if (report_.skipped_rows.size() < named_skipped_rows) report_.skipped_rows.push_back(error.headline());
  }

  std::vector<std::string> kinds() const {
    if (kinds_.empty()) return {"nothing"};
    return {kinds_.begin(), kinds_.end()};
  }

  const DatasetOptions& options_;
  size_t index_;
  InformReader reader_;
  ReadExamples& out_;
  DatasetReport& report_;
  std::vector<RowOrigin>& origins_;
  int64_t examples_ = 0;
  struct Further {
    Example example;
    std::string where;
  };
  std::vector<Further> further_;  // of the last rows
  std::set<std::string> kinds_;
  std::set<std::string> unused_texts_;
  int64_t taken_ = 0, without_prompt_ = 0;
};

void tell(const DatasetOptions& options, const DatasetReport& report) {
  if (report.cut_rows)
    log::warning(options.section, ": ", report.cut_rows, " of ", counted(report.rows, "row"),
                 report.cut_rows == 1 ? " was" : " were", " longer than max_length and lost ",
                 counted(report.cut_tokens, "token"));
  if (report.too_long)
    log::warning(options.section, ": ", report.too_long, " of ", counted(report.rows, "row"),
                 report.too_long == 1 ? " is longer than max_length and was dropped"
                                      : " are longer than max_length and were dropped");
  if (report.dropped)
    log::warning(options.section, ": ", report.dropped, " of ", counted(report.rows, "row"),
                 report.dropped == 1 ? " has no tokens to train on and was dropped"
                                     : " have no tokens to train on and were dropped");
  if (report.copies)
    log::info(options.section, ": ", counted(report.copies, "row"), report.copies == 1 ? " is a copy" : " are copies",
              " of earlier ones and ", report.copies == 1 ? "was" : "were", " left out");
  if (report.contaminated)
    log::warning(options.section, ": ", counted(report.contaminated, "row"),
                 report.contaminated == 1 ? " shares " : " share ", options.decontamination->words,
                 " words in a row with evaluation data",
                 !options.decontamination->drop ? " (mixture.decontaminate: {drop: true} leaves them out)"
                 : report.contaminated == 1     ? " and was left out"
                                                : " and were left out");
  if (report.skipped) {
    std::string rows;
    for (size_t i = 0; i < std::min(report.skipped_rows.size(), skipped_rows_in_log); ++i)
      rows += "\n    " + report.skipped_rows[i];
    if (report.skipped > int64_t(skipped_rows_in_log)) rows += "\n    ... (`easydel data check` lists all)";
    log::warning(options.section, ": ", counted(report.skipped, "bad row"),
                 report.skipped == 1 ? " was skipped:" : " were skipped:", rows);
  }
  if (options.packing != Packing::none) log::info(options.section, ": ", report.packing.text());
}

[[noreturn]] void refuse_empty(const DatasetOptions& options, const DatasetReport& report) {
  refuse(options.section,
         str("there is nothing to train on in ", counted(report.rows, "row"),
             report.dropped + report.too_long ? " (all were dropped)" : ""),
         "give at least one row with a text, a conversation or an answer");
}

std::shared_ptr<const WordRuns> evaluated_words(const DatasetOptions& options) {
  DatasetOptions evaluation = options;
  evaluation.informs = options.decontamination->against;
  evaluation.section = "mixture.evaluation";
  auto out = std::make_shared<WordRuns>(options.decontamination->words);
  const Prepare nothing = [](const TypedRow&) { return Prepared(); };
  for (size_t i = 0; i < evaluation.informs.size(); ++i)
    InformReader(evaluation, i, nothing).read([&](PreparedRow& row) {
      if (row.error && row.ends_file) throw *row.error;
      if (!row.error) out->add(row.row);
      return true;
    });
  return out;
}

}  // namespace

void check_first_rows(const DatasetOptions& options, const Prepare& prepare) {
  DatasetOptions first = options;
  ReadExamples read;
  DatasetReport& report = read.report;
  bool found = false;
  for (size_t i = 0; i < first.informs.size(); ++i) {
    InformConfig& inform = first.informs[i];
    inform.num_rows = std::min(inform.num_rows.value_or(rows_to_check), rows_to_check);
    const int64_t before = report.rows + report.skipped;
    found |= InformExamples(first, i, prepare, read).read() > 0;
    found |= report.rows + report.skipped - before == rows_to_check;  // later rows may have what these lack
  }
  if (!found) refuse_empty(options, report);
}

Dataset Dataset::build(const DatasetOptions& options, const Prepare& prepare) {
  ReadExamples read;
  if (options.decontamination) read.repeated = evaluated_words(options);
  for (size_t i = 0; i < options.informs.size(); ++i) {
    InformExamples inform(options, i, prepare, read);
    read.sizes.push_back(inform.read());
    inform.tell();
  }
  return assemble(options, std::move(read));
}

Dataset Dataset::assemble(const DatasetOptions& options, ReadExamples read) { return {options, std::move(read)}; }

Dataset::Dataset(const DatasetOptions& options, ReadExamples read)
    : examples_(std::move(read.examples)),
      order_({}, {}, false, 0),
      report_(std::move(read.report)),
      origins_(std::move(read.origins)) {
  examples_.finish();
  if (examples_.size() == 0) refuse_empty(options, report_);
  BlockMixture mixture = options.mixture;
  mixture.weights = options.weights;
  repeats_ = mixture.on;
  order_ = EpochOrder(read.sizes, mixture, options.shuffled, options.seed);
  if (options.packing != Packing::none) {
    // Documents in the order of the first epoch, so that packed rows mix and shuffle them, too.
    std::vector<int64_t> documents;
    if (mixture.on || options.shuffle_documents)
      documents = EpochOrder(read.sizes, mixture, options.shuffle_documents, options.seed).epoch(0);
    packed_.emplace(examples_, documents, options.packing, options.row_length, report_.packing);
    order_ = EpochOrder({packed_->size()}, {}, options.shuffled, options.seed);
    repeats_ = false;
  }
  tell(options, report_);
  fingerprint_ = compute_fingerprint();
  ::malloc_trim(0);  // gives the memory of what was read back to the system
}

Value DatasetReport::bad_rows() const {
  if (skipped == 0) return {};
  Value out = Value::map(), first = Value::list();
  for (const std::string& row : skipped_rows) first.items.push_back(Value::text(row));
  out.set("count", Value::integer(skipped));
  out.set("first", std::move(first));
  return out;
}

std::vector<RowOrigin> Dataset::origins(const Example& example) const {
  const Column* const rows = example.find(row_column);
  check(rows, "a dataset that did not keep its origins");
  std::vector<RowOrigin> out;
  for (const int64_t row : std::get<std::vector<int64_t>>(rows->values)) out.push_back(origins_.at(size_t(row)));
  return out;
}

Example Dataset::at(int64_t index) const {
  Example out = packed_ ? packed_->at(examples_, index) : examples_.at(index);
  for (const Added& added : added_) {
    const int64_t begin = added.begins[size_t(index)];
    if (begin < 0) continue;
    const auto first = added.numbers.begin() + begin;
    out.set({added.name, Column::Per::sequence, std::vector<float>(first, first + std::ptrdiff_t(out.lengths.size()))});
  }
  return out;
}

int64_t Dataset::tokens_of(int64_t index) const {
  return packed_ ? packed_->tokens_of(index) : examples_.tokens_of(index);
}

int64_t Dataset::labels_of(int64_t index) const {
  return packed_ ? packed_->labels_of(examples_, index) : examples_.labels_of(index);
}

void Dataset::add_numbers(int64_t index, const std::string& name, std::span<const float> numbers) {
  auto found = std::ranges::find(added_, name, &Added::name);
  if (found == added_.end()) {
    added_.push_back({name, std::vector<int64_t>(size_t(examples_count()), -1), {}});
    found = std::prev(added_.end());
  }
  found->begins.at(size_t(index)) = int64_t(found->numbers.size());
  found->numbers.insert(found->numbers.end(), numbers.begin(), numbers.end());
}

// `of_all`: the sum over all examples, each once.
template <class Count>
int64_t Dataset::sum_of_epoch(int64_t of_all, Count count) const {
  if (!repeats_) return of_all;
  int64_t sum = 0;
  for (const int64_t i : epoch(0)) sum += count(i);
  return sum;
}

int64_t Dataset::tokens() const {
  return sum_of_epoch(packed_ ? report_.packing.tokens : examples_.tokens(),
                      [this](int64_t i) { return tokens_of(i); });
}

int64_t Dataset::labels() const {
  int64_t all = packed_ ? 0 : examples_.labels();
  for (int64_t row = 0; packed_ && row < packed_->size(); ++row) all += packed_->labels_of(examples_, row);
  return sum_of_epoch(all, [this](int64_t i) { return labels_of(i); });
}

int64_t Dataset::longest() const {
  if (!packed_) return examples_.longest();
  int64_t most = 0;
  for (int64_t row = 0; row < packed_->size(); ++row) most = std::max(most, packed_->tokens_of(row));
  return most;
}

std::string Dataset::compute_fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over 32-bit words
  const auto add = [&](uint32_t word) { hash = (hash ^ word) * 0x100000001b3; };
  for (int64_t i = 0; i < examples_count(); ++i) {
    const Example example = at(i);
    for (const auto* words : {&example.tokens, &example.labels, &example.lengths}) {
      add(uint32_t(words->size()));
      for (const int32_t word : *words) add(uint32_t(word));
    }
  }
  for (int64_t i = 0; examples_.has(loss_weights) && i < examples_count(); ++i) {
    const Example example = at(i);
    for (const float weight : std::get<std::vector<float>>(example.find(loss_weights)->values))
      add(std::bit_cast<uint32_t>(weight));
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace easydel::data
