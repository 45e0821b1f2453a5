#include "easydel/data/example_stream.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/config/fields.h"
#include "easydel/data/inform_examples.h"
#include "easydel/data/row_copies.h"
#include "easydel/data/row_function.h"
#include "easydel/hub/settings.h"

namespace easydel::data {
namespace {

constexpr int64_t copies_version = 1;  // of the words that are compared
constexpr const char* keep_all = "leave mixture.enable_caching out, or set mixture.tokenization.keep_in_memory: true";

Prepare noting_repeats(const Prepare& prepare, const std::shared_ptr<const WordRuns>& evaluated) {
  if (!evaluated) return prepare;
  return [=](const TypedRow& row) {
    Prepared out = prepare(row);
    out.repeats_evaluation = evaluated->shares(row);
    return out;
  };
}

// What the informs do to their rows. Names and files do not count: where the rows are does.
std::string description_of(const DatasetOptions& options) {
  Value out = Value::map();
  out.set("settings", options.stream->settings);
  out.set("target_field", Value::text(options.target_field));
  out.set("tokens_field", Value::text(options.tokens_field));
  Value& informs = out.set("informs", Value::list());
  for (const InformConfig& inform : options.informs) {
    Value& one = informs.items.emplace_back(Value::map());
    for (auto& [name, value] : config::write(inform).entries)
      if (name != "data_files" && name != "name") one.set(name, std::move(value));
    for (const auto& [name, function] :
         {std::pair{"preprocessing_fn", inform.preprocessing_fn}, {"format_callback", inform.format_callback}})
      if (function) one.set(name, Value::text(code_digest(*function)));
  }
  if (options.tokenize_callback) out.set("tokenize_callback", Value::text(code_digest(*options.tokenize_callback)));
  if (options.packing != Packing::none) {
    Value& packing = out.set("packing", Value::list());  // which documents go into which row
    for (const int64_t number : options.packing_numbers()) packing.items.push_back(Value::integer(number));
  }
  return to_json(out) + "\n";
}

}  // namespace

ExampleStream::ExampleStream(DatasetOptions options, Prepare prepare)
    : options_(std::move(options)),
      evaluated_(options_.decontamination ? evaluated_words(options_) : nullptr),
      prepare_(noting_repeats(prepare, evaluated_)) {
  const StreamOptions& keys = *options_.stream;
  RowIndices indices(keys.cache.empty() ? keys.cache : keys.cache / "rows");
  const bool is_mixed = options_.mixture.on && options_.informs.size() > 1;
  std::vector<std::vector<size_t>> groups;
  for (size_t i = 0; i < options_.informs.size(); ++i) {
    if (is_mixed || groups.empty()) groups.emplace_back();
    groups.back().push_back(i);
  }
  std::string description = description_of(options_), windows;
  if (evaluated_) description += str("without ", options_.decontamination->drop, " ", evaluated_->digest(), "\n");
  for (const std::vector<size_t>& informs : groups)
    sources_.push_back(std::make_unique<NumberedRows>(options_, informs, prepare_, indices));
  const int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const int64_t workers = keys.workers > 0 ? keys.workers : std::max<int64_t>(1, cores - 1);
  if (options_.deduplicate) description += leave_out_copies(description, workers);
  for (const auto& source : sources_) {
    NumberedRows& rows = *source;
    begins_.push_back(sizes_.empty() ? 0 : begins_.back() + sizes_.back());
    sizes_.push_back(rows.size());
    windows_.push_back({rows.block_rows(), keys.window_rows});
    rows.keep(windows_.back());
    rows.add_to(description);
    windows += str(windows.empty() ? "" : " ", rows.block_rows(), "x",
                   WindowedOrder::windows_of(rows.size(), windows_.back()));
    if (WindowedOrder::windows_of(rows.size(), windows_.back()) > 1) windows_text_ = windows;
  }
  if (!windows_text_.empty()) windows_text_ = windows;
  if (!shuffles_rows()) windows_text_.clear();
  fingerprint_ = files::sha256(description).substr(0, 16);
  for (int64_t i = 0; i < workers; ++i) workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

// The rows are numbered without copies of earlier ones from then on. Returns what they were, for the description.
std::string ExampleStream::leave_out_copies(std::string description, int64_t threads) {
  int64_t rows = 0;
  for (const auto& source : sources_) {
    source->add_to(description), source->add_files_to(description);
    rows += source->all_rows();
  }
  constexpr size_t digits = 32;
  CopySearch search;
  search.key = files::sha256(str(copies_version, "\n", description)).substr(0, digits);
  if (!options_.stream->cache.empty()) search.folder = options_.stream->cache / "rows";
  const RowSet copies = find_copies(
      rows,
      [&](const auto& sink) {
        for (const auto& source : sources_) source->digest_words(threads, sink);
      },
      search);
  int64_t begin = 0;
  for (const auto& source : sources_) {
    RowSet own(source->all_rows());
    for (int64_t row = 0; row < own.size(); ++row)
      if (copies.has(begin + row)) own.add(row);
    begin += own.size();
    if (own.count() > 0) source->leave_out(std::move(own));
  }
  report_.copies = copies_ = copies.count();
  if (copies_ > 0)
    log::info(options_.section, ": ", counted(copies_, "row"), copies_ == 1 ? " is a copy" : " are copies",
              " of earlier ones and ", copies_ == 1 ? "is" : "are", " left out");
  const std::vector<uint64_t>& words = copies.words();
  return "copies " + files::sha256({reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)}) +
         "\n";
}

ExampleStream::~ExampleStream() = default;  // the workers are stopped and joined first, because they come last

int64_t ExampleStream::rows() const { return begins_.back() + sizes_.back(); }

EpochOrder ExampleStream::order() const {
  BlockMixture mixture = options_.mixture;
  mixture.weights = options_.weights;
  return {sizes_, mixture, shuffles_rows(), options_.seed, windows_};
}

bool ExampleStream::shuffles_rows() const {
  return options_.packing == Packing::none ? options_.shuffled : options_.shuffle_documents;
}

std::string ExampleStream::shuffle_text() const {
  int64_t blocks = 0, rows = 0;
  std::string large;
  for (size_t s = 0; s < sources_.size(); ++s) {
    const int64_t windows = WindowedOrder::windows_of(sizes_[s], windows_[s]);
    rows = std::max(rows, (sizes_[s] + windows - 1) / windows);
    blocks = std::max(blocks, windows_[s].block_rows);
    constexpr int64_t many_rows = 10'000;
    if (large.empty()) large = sources_[s]->large_group(many_rows);
  }
  std::string out = str("rows are shuffled by blocks of ", blocks, " and windows of about ", counted(rows, "row"));
  if (!large.empty())
    out += "; a window holds 64 blocks in memory, and " + large + " is much: write the file with smaller row groups";
  return out;
}

std::pair<NumberedRows*, int64_t> ExampleStream::place_of(int64_t row) const {
  const size_t source = size_t(std::ranges::upper_bound(begins_, row) - begins_.begin()) - 1;
  return {sources_[source].get(), row - begins_[source]};
}

RowOrigin ExampleStream::origin(int64_t row) {
  const auto [source, number] = place_of(row);
  return source->origin(number);
}

void ExampleStream::announce(std::span<const int64_t> rows, bool anew) {
  const std::lock_guard lock(mutex_);
  if (anew) tasks_.clear();
  for (const int64_t row : rows) {
    auto task = std::make_shared<Task>();
    task->row = row;
    tasks_.push_back(std::move(task));
  }
  announced_.notify_all();
}

void ExampleStream::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::shared_ptr<Task> task;
    const bool found = announced_.wait(lock, stop, [&] {
      const auto next = std::ranges::find(tasks_, false, &Task::is_begun);
      if (next == tasks_.end()) return false;
      task = *next;
      return true;
    });
    if (!found || stop.stop_requested()) return;
    task->is_begun = true;
    lock.unlock();
    try {
      const auto [source, number] = place_of(task->row);
      task->made = source->at(number);
    } catch (...) {
      task->failure = std::current_exception();
    }
    lock.lock();
    task->is_done = true;
    done_.notify_all();
  }
}

std::optional<PreparedRow> ExampleStream::take(int64_t row) {
  std::unique_lock lock(mutex_);
  // Rows that were announced before it are not asked for any more.
  const auto found = std::ranges::find(tasks_, row, [](const auto& task) { return task->row; });
  if (found == tasks_.end()) {
    lock.unlock();
    const auto [source, number] = place_of(row);
    return source->at(number);
  }
  const std::shared_ptr<Task> task = *found;
  tasks_.erase(tasks_.begin(), found);
  done_.wait(lock, [&] { return task->is_done; });
  tasks_.pop_front();
  if (task->failure) std::rethrow_exception(task->failure);
  return std::move(task->made);
}

void ExampleStream::note(const PreparedRow& row) {
  ++report_.rows;
  report_.cut_rows += row.prepared.cut_tokens > 0;
  report_.cut_tokens += row.prepared.cut_tokens;
  report_.mistakes.add(row.prepared.all_mistakes(), row.row.where);
  report_.special.insert(row.prepared.special.begin(), row.prepared.special.end());
  report_.too_long += row.prepared.too_long;
  report_.dropped += row.prepared.learns_nothing();
}

std::optional<Example> ExampleStream::find(int64_t row) {
  std::optional<PreparedRow> made = take(row);
  if (!made) return std::nullopt;
  if (made->error) {
    const UserError& error = *made->error;
    if (!options_.bad_rows.skip) throw error;
    if (options_.bad_rows.most && report_.skipped >= *options_.bad_rows.most)
      refuse(Where(error.place, error.where),
             str("is bad row ", report_.skipped + 1, ", and mixture.max_bad_rows is ", *options_.bad_rows.most, ": ",
                 error.problem),
             "`easydel data check` lists all bad rows; repair them, or raise mixture.max_bad_rows");
    ++report_.skipped;
    if (report_.skipped_rows.size() < named_skipped_rows) {
      report_.skipped_rows.push_back(error.headline());
      log::warning("a bad row is skipped: ", error.headline());
    }
    return std::nullopt;
  }
  if (!made->prepared.further.empty())
    refuse(made->row.where, "makes several examples, and rows that are read while the run goes on may have one each",
           keep_all);
  if (made->prepared.repeats_evaluation) {
    const bool drops = options_.decontamination->drop;
    if (++report_.contaminated <= int64_t(named_skipped_rows))
      log::warning(made->row.where, ": shares ", options_.decontamination->words,
                   " words in a row with evaluation data", drops ? " and is left out" : "");
    if (drops) return std::nullopt;
  }
  note(*made);
  if (!made->prepared.example) return std::nullopt;
  if (options_.keep_origins)
    made->prepared.example->set(
        {row_column, Column::Per::sequence, std::vector<int64_t>(made->prepared.example->lengths.size(), row)});
  return std::move(made->prepared.example);
}

std::optional<Example> ExampleStream::look_at(int64_t row) {
  const auto [source, number] = place_of(row);
  std::optional<PreparedRow> made = source->at(number);
  if (!made || made->error || (made->prepared.repeats_evaluation && options_.decontamination->drop))
    return std::nullopt;
  return std::move(made->prepared.example);
}

void ExampleStream::check_skipped(int64_t count) const {
  if (options_.bad_rows.most && count > *options_.bad_rows.most)
    refuse("mixture.max_bad_rows", str("all ranks together have skipped ", counted(count, "bad row")),
           "`easydel data check` lists all bad rows; repair them, or raise mixture.max_bad_rows");
}

std::optional<StreamOptions> stream_options(const MixtureConfig& mixture) {
  if (mixture.enable_caching || !mixture.streaming || mixture.tokenization.keep_in_memory) return std::nullopt;
  StreamOptions out;
  out.cache = hub::expand_home(mixture.cache_dir);
  out.min_bytes = mixture.cache_min_bytes;
  out.window_rows = mixture.shuffle_buffer_size;
  out.workers = mixture.prefetch_workers.value_or(0);
  return out;
}

bool is_streamed(const DatasetOptions& options) {
  if (!options.stream || options.store || options.evaluation) return false;
  const Prepare nothing = [](const TypedRow&) { return Prepared(); };
  int64_t bytes = 0;
  for (size_t i = 0; i < options.informs.size(); ++i)
    for (const auto& file : InformReader(options, i, nothing).files()) bytes += int64_t(files::size(file));
  return bytes >= options.stream->min_bytes;
}

std::shared_ptr<ExampleStream> open_stream(const DatasetOptions& options, const Prepare& prepare) {
  return is_streamed(options) ? std::make_shared<ExampleStream>(options, prepare) : nullptr;
}

}  // namespace easydel::data
