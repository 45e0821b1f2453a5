#include "easydel/data/dataset.h"

#include <malloc.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/data/example_stream.h"
#include "easydel/data/inform_examples.h"
#include "easydel/data/packed_stream.h"
#include "easydel/data/stored_origins.h"
#include "easydel/data/token_store.h"

namespace easydel::data {
namespace {

constexpr int64_t rows_to_check = 64;  // of each inform
constexpr size_t skipped_rows_in_log = 20;

class InMemory final : public ExampleTarget {
 public:
  explicit InMemory(ExampleBlocks& examples) : examples_(examples) {}
  void add(const Example& example, int64_t /*row*/) override { examples_.add(example); }

 private:
  ExampleBlocks& examples_;
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

// Refuses rows that all teach nothing, though there are examples.
void refuse_useless(const DatasetOptions& options, const DatasetReport& report) {
  if (options.evaluation || report.rows == 0 || report.mistakes.useless() < report.rows) return;
  refuse(options.section, "there is nothing to learn: " + join(report.mistakes.lines(report.rows), "; "),
         "`easydel data check` says what is wrong with each row");
}

// For the name of the order in a checkpoint.
std::string windows_of_packing(const DatasetOptions& options) { return str("pack ", options.documents_in_window()); }

[[noreturn]] void refuse_empty(const DatasetOptions& options, const DatasetReport& report) {
  refuse(options.section,
         str("there is nothing to train on in ", counted(report.rows, "row"),
             report.dropped + report.too_long ? " (all were dropped)" : ""),
         "give at least one row with a text, a conversation or an answer");
}

}  // namespace

int64_t DatasetOptions::documents_in_window() const {
  if (packs_by_schedule()) return mixture.block_size;
  return pack_window.value_or(stream ? default_pack_window_of_stream : default_pack_window);
}

std::vector<int64_t> DatasetOptions::packing_numbers() const {
  return {int64_t(packing), row_length, documents_in_window(), int64_t(shuffle_documents), int64_t(seed)};
}

RowMistakes Prepared::all_mistakes() const {
  RowMistakes out = mistakes;
  if (learns_nothing()) out.add(RowMistake::nothing_learned);
  return out;
}

void check_first_rows(const DatasetOptions& options, const Prepare& prepare) {
  DatasetOptions first = options;
  ReadExamples read;
  DatasetReport& report = read.report;
  InMemory target(read.examples);
  bool found = false, more = false;
  for (size_t i = 0; i < first.informs.size(); ++i) {
    InformConfig& inform = first.informs[i];
    inform.num_rows = std::min(inform.num_rows.value_or(rows_to_check), rows_to_check);
    const int64_t before = report.rows + report.skipped;
    found |= read_inform(first, i, prepare, target, read) > 0;
    more |= report.rows + report.skipped - before == rows_to_check;  // later rows may have what these lack
  }
  if (more) return;
  if (!found) refuse_empty(options, report);
  refuse_useless(options, report);
}

Dataset Dataset::build(const DatasetOptions& options, const Prepare& prepare) {
  if (std::shared_ptr<ExampleStream> stream = open_stream(options, prepare)) return {options, std::move(stream)};
  if (std::optional<ReadExamples> stored = read_through_store(options, prepare))
    return assemble(options, std::move(*stored));
  ReadExamples read;
  InMemory target(read.examples);
  read_examples(options, prepare, target, read);
  return assemble(options, std::move(read));
}

Dataset Dataset::assemble(const DatasetOptions& options, ReadExamples read) { return {options, std::move(read)}; }

Dataset::Dataset(const DatasetOptions& options, ReadExamples read)
    : examples_(std::move(read.examples)),
      order_({}, {}, false, 0),
      report_(std::move(read.report)),
      origins_(std::move(read.origins)),
      stored_origins_(std::move(read.stored_origins)) {
  examples_.finish();
  if (examples_.size() == 0) refuse_empty(options, report_);
  refuse_useless(options, report_);
  BlockMixture mixture = options.mixture;
  mixture.weights = options.weights;
  repeats_ = mixture.on;
  order_ = EpochOrder(read.sizes, mixture, options.shuffled, options.seed);
  if (options.packing != Packing::none) {
    // Documents in the order of the first epoch, so that packed rows mix and shuffle them, too.
    pack(options, EpochOrder(read.sizes, mixture, options.shuffle_documents, options.seed));
    repeats_ = false;
  }
  tell(options, report_);
  ExampleDigest digest = examples_.digest();
  if (options.packs_by_schedule())
    for (const int64_t number : options.packing_numbers()) digest.add(uint64_t(number));  // a run may become longer
  else if (packed_)
    packed_->add_to(digest);
  fingerprint_ = digest.text();
  ::malloc_trim(0);  // gives the memory of what was read back to the system
}

void Dataset::pack(const DatasetOptions& options, const EpochOrder& documents) {
  const int64_t window = options.documents_in_window();
  packed_.emplace(options.packing, options.row_length);
  std::vector<int64_t> ends, of_window;
  if (options.packs_by_schedule()) {
    const WeightSchedule& schedule = options.mixture.schedule;
    for (std::vector<int64_t> drawn; packed_->size() < schedule.examples_in_run; ends.push_back(packed_->size()))
      packed_->add(examples_,
                   documents.block(int64_t(ends.size()), packed_->size() / schedule.examples_per_update, drawn),
                   report_.packing);
    packed_epochs_.emplace(std::move(ends), PackedOrder::endless(options.shuffled, options.seed),
                           schedule.examples_in_run);
    return;
  }
  for (int64_t begin = 0; begin < documents.size(); begin += window) {
    of_window.clear();
    for (int64_t i = begin; i < std::min(begin + window, documents.size()); ++i)
      of_window.push_back(documents.at(0, i));
    packed_->add(examples_, of_window, report_.packing);
    ends.push_back(packed_->size());
  }
  if (ends.size() > 1) windows_ = windows_of_packing(options);
  packed_epochs_.emplace(std::move(ends), options.shuffled, options.seed);
}

Dataset::Dataset(const DatasetOptions& options, std::shared_ptr<ExampleStream> stream)
    : stream_(std::move(stream)),
      windows_(stream_->windows_text()),
      order_(stream_->order()),
      repeats_(false),
      fingerprint_(stream_->fingerprint()) {
  constexpr int64_t rows_to_look_at = 64;
  std::vector<int64_t> first;
  if (options.packs_by_schedule()) {
    std::vector<int64_t> drawn;
    first = order_.block(0, 0, drawn);
    if (int64_t(first.size()) > rows_to_look_at) first.resize(size_t(rows_to_look_at));
  } else {
    for (int64_t i = 0; i < std::min(size(), rows_to_look_at); ++i) first.push_back(index(0, i));
  }
  announce(first, true);
  for (const int64_t row : first) {
    const std::optional<Example> example = find(row);
    if (!example) continue;
    ++first_rows_.rows;
    first_rows_.tokens += int64_t(example->tokens.size());
    first_rows_.labels += example->labelled();
    first_rows_.longest = std::max(first_rows_.longest, int64_t(example->tokens.size()));
  }
  first_report_ = report();
  forget_report();
  if (first_rows_.rows == 0) refuse_empty(options, first_report_);
  refuse_useless(options, first_report_);
  if (options.packing != Packing::none) {
    packed_stream_ = std::make_shared<PackedStream>(stream_, options);
    rows_of_packed_stream_ = std::max<int64_t>(1, tokens() / options.row_length);
    if (options.packs_by_schedule()) rows_of_packed_stream_ = options.mixture.schedule.examples_in_run;
    first_rows_.longest = options.row_length;
    if (packed_stream_->windows() > 1 && !options.packs_by_schedule())
      windows_ += (windows_.empty() ? "" : " ") + windows_of_packing(options);
  }
  log::info(options.section, ": ", counted(stream_->rows(), "row"),
            " will be read and tokenized while the run goes on; tokens of an epoch are estimated from the first ",
            counted(int64_t(first.size()), "row"));
  if (!windows_.empty()) log::info(options.section, ": ", stream_->shuffle_text());
}

int64_t Dataset::examples_count() const {
  if (stream_)
    refuse("mixture.enable_caching",
           "something needs every example before the first step, and with false they are read "
           "while the run goes on",
           "leave mixture.enable_caching out, or set mixture.tokenization.keep_in_memory: true");
  return packed_ ? packed_->size() : examples_.size();
}

const DatasetReport& Dataset::report() const {
  return packed_stream_ ? packed_stream_->report() : stream_ ? stream_->report() : report_;
}

void Dataset::forget_report() {
  if (stream_ && !packed_stream_) stream_->forget_report();
}

int64_t Dataset::size() const {
  if (packed_epochs_) return packed_epochs_->size();
  return packed_stream_ ? rows_of_packed_stream_ : order_.size();
}

int64_t Dataset::index(int64_t epoch, int64_t position) const {
  check(!packed_stream_, "a place of rows that are not packed yet");
  return packed_epochs_ ? packed_epochs_->at(epoch, position) : order_.at(epoch, position);
}

void Dataset::announce(std::span<const int64_t> indices, bool anew) const {
  if (stream_) stream_->announce(indices, anew);
}

std::optional<Example> Dataset::find(int64_t index) const {
  check(!packed_stream_, "a row by its number of rows that are not packed yet");
  if (stream_) return stream_->find(index);
  return at(index);
}

std::optional<Example> Dataset::look_at(int64_t index) const {
  return stream_ && !packed_stream_ ? stream_->look_at(index) : std::optional(at(index));
}

void Dataset::check_skipped(int64_t count) const {
  if (stream_) stream_->check_skipped(count);
}

Value DatasetReport::bad_rows() const {
  if (skipped == 0) return {};
  Value out = Value::map(), first = Value::list();
  for (const std::string& row : skipped_rows) first.items.push_back(Value::text(row));
  out.set("count", Value::integer(skipped));
  out.set("first", std::move(first));
  return out;
}

std::vector<int64_t> Dataset::rows_of(const Example& example) const {
  const Column* const rows = example.find(row_column);
  check(rows, "a dataset that did not keep its origins");
  return std::get<std::vector<int64_t>>(rows->values);
}

std::vector<RowOrigin> Dataset::origins(std::span<const int64_t> rows) const {
  if (stored_origins_) return stored_origins_->of(rows);
  std::vector<RowOrigin> out;
  for (const int64_t row : rows) out.push_back(stream_ ? stream_->origin(row) : origins_.at(size_t(row)));
  return out;
}

Example Dataset::at(int64_t index) const {
  if (stream_) {
    std::optional<Example> out = stream_->find(index);
    if (!out)
      refuse(stream_->origin(index).where, "the row has no example, and here each row must have one",
             "leave mixture.enable_caching out, or set mixture.tokenization.keep_in_memory: true");
    return std::move(*out);
  }
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
  if (stream_) return int64_t(at(index).tokens.size());
  return packed_ ? packed_->tokens_of(index) : examples_.tokens_of(index);
}

int64_t Dataset::labels_of(int64_t index) const {
  if (stream_) return at(index).labelled();
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
  for (int64_t i = 0; const int64_t uses : order_.uses(0)) sum += uses * count(i++);
  return sum;
}

int64_t Dataset::tokens() const {
  if (stream_) return int64_t(double(first_rows_.tokens) / double(first_rows_.rows) * double(order_.size()));
  return sum_of_epoch(packed_ ? report_.packing.tokens : examples_.tokens(),
                      [this](int64_t i) { return tokens_of(i); });
}

int64_t Dataset::labels() const {
  if (stream_) return int64_t(double(first_rows_.labels) / double(first_rows_.rows) * double(order_.size()));
  int64_t all = packed_ ? 0 : examples_.labels();
  for (int64_t row = 0; packed_ && row < packed_->size(); ++row) all += packed_->labels_of(examples_, row);
  return sum_of_epoch(all, [this](int64_t i) { return labels_of(i); });
}

int64_t Dataset::longest() const {
  if (stream_) return first_rows_.longest;
  if (!packed_) return examples_.longest();
  int64_t most = 0;
  for (int64_t row = 0; row < packed_->size(); ++row) most = std::max(most, packed_->tokens_of(row));
  return most;
}

}  // namespace easydel::data
