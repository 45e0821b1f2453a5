// A run's data as examples: read, prepared by the method, packed, mixed; and the order in which an epoch uses them.
// They are kept as arrays of 2 or 4 bytes a token, and put together one by one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/data/epoch_order.h"
#include "easydel/data/example_blocks.h"
#include "easydel/data/mixture_config.h"
#include "easydel/data/packed_order.h"
#include "easydel/data/packing.h"
#include "easydel/data/remote_files.h"
#include "easydel/data/row_kinds.h"
#include "easydel/data/row_mistakes.h"
#include "easydel/data/row_words.h"

namespace easydel::data {

struct Prepared {
  std::optional<Example> example;  // nullopt: no labels; counted as dropped
  int64_t cut_tokens = 0;          // what truncation took
  bool too_long = false;           // there is no example because the row is longer than max_length
  // More examples of the same row. They come after the first examples of up to a thousand rows, as TRL's unpaired
  // pairs.
  std::vector<Example> further = {};
  RowMistakes mistakes = {};
  std::vector<int32_t> special = {};  // special tokens that are learned, each once
  bool is_image_alone = false;        // the row has images and no text
  bool repeats_evaluation = false;    // noted by a stream that decontaminates
  bool learns_nothing() const { return !example && !too_long && further.empty() && !is_image_alone; }
  // With nothing_learned, if that is so.
  RowMistakes all_mistakes() const;
};
// How a method turns a row into an example. Called from several threads at once.
using Prepare = std::function<Prepared(const TypedRow&)>;

// What to do with a row that cannot be read or prepared.
struct BadRows {
  bool skip = false;                 // leave it out and count it; false: its error ends the run
  std::optional<int64_t> most = {};  // more of them end the run; not given: any number
};

// Rows that repeat evaluation data.
struct Decontamination {
  int64_t words = 13;                 // in a row that both have
  bool drop = false;                  // leave them out; false: count them
  std::vector<InformConfig> against;  // the evaluation data
};

// Where examples are kept for later runs: token_store.h.
struct StoreOptions {
  std::filesystem::path cache;  // the folder of all stores
  // Of the input files together; less is prepared by every run, in memory.
  int64_t min_bytes = int64_t{64} << 20;
  std::optional<int64_t> limit = {};  // bytes of all stores; not given: any number
  int64_t shard_tokens = int64_t{8} << 20;
  Value settings;  // what decides the examples besides rows and informs: the method's keys, the tokenizer
};

// Reading rows while they are needed, instead of all of them before: example_stream.h.
struct StreamOptions {
  std::filesystem::path cache;            // the folder in which indices of files are kept
  int64_t min_bytes = int64_t{64} << 20;  // of the input files together; less is prepared at once, in memory
  int64_t window_rows = 1000;             // of a shuffle, at least
  int64_t workers = 0;                    // threads that prepare; 0: one for each core but one
  Value settings;                         // what decides the examples besides rows and informs
};

struct DatasetOptions {
  std::vector<InformConfig> informs;
  std::string section = "mixture.informs";  // their section, for messages
  std::string target_field = "text";
  std::string tokens_field = "tokens";                          // of rows that are tokenized already
  std::string image_field = "image";                            // of informs with images that name no field
  RemoteOptions remote = {};                                    // for files that are elsewhere
  int64_t prepare_rows = 1000;                                  // that are prepared together
  int64_t prepare_threads = 0;                                  // at most; 0: one for each core
  std::optional<std::string> tokenize_callback = {};            // as MixtureConfig has it
  RowKinds kinds = {};                                          // that `prepare` takes; empty: all
  std::vector<std::pair<std::string, std::string>> names = {};  // as FieldRules::names
  bool all_columns = false;                                     // rows keep their other fields for `prepare`
  bool evaluation = false;                                      // rows are not trained on
  std::vector<double> weights;  // of the block mixture, one for each inform; empty: equal
  BlockMixture mixture;
  Packing packing = Packing::none;
  int64_t row_length = 0;                   // of packed rows
  std::optional<int64_t> pack_window = {};  // documents that are packed together; not given: documents_in_window()
  bool shuffle_documents = false;
  bool shuffled = false;
  uint64_t seed = 0;
  BadRows bad_rows;
  bool deduplicate = false;  // leave out rows with the words of an earlier one
  std::optional<Decontamination> decontamination = {};
  std::optional<StoreOptions> store = {};    // not given: in memory
  std::optional<StreamOptions> stream = {};  // if there is no store
  // Keep where each row comes from, for Dataset::origins. A token store is then used only if it is there.
  bool keep_origins = false;
  std::function<void(int64_t rows)> on_rows = {};  // called now and then with the number of rows prepared so far

  // Documents that are packed together: with a schedule of weights, a block of the mixture.
  int64_t documents_in_window() const;
  bool packs_by_schedule() const {
    return packing != Packing::none && mixture.on && informs.size() > 1 && mixture.schedule.is_packed;
  }
  std::vector<int64_t> packing_numbers() const;  // that decide which documents go into which row
};

struct DatasetReport {
  int64_t rows = 0, dropped = 0, too_long = 0, cut_rows = 0, cut_tokens = 0;
  int64_t copies = 0;                     // left out by deduplicate
  int64_t contaminated = 0;               // that repeat evaluation data
  int64_t skipped = 0;                    // bad rows
  std::vector<std::string> skipped_rows;  // "train.jsonl:17: the row has no field 'text'": the first ones
  PackingReport packing;
  MistakeCounts mistakes;
  std::set<int32_t> special;  // special tokens that some row learns
  Value bad_rows() const;     // {count, first}, for a checkpoint; null: none were skipped
};

inline constexpr size_t named_skipped_rows = 100;  // at most, in DatasetReport

struct RowOrigin {
  size_t inform = 0;  // in DatasetOptions
  std::string where;  // "train.jsonl:17"
};

class StoredOrigins;

// The examples of all informs, in the order of their rows.
struct ReadExamples {
  ExampleBlocks examples;
  std::vector<int64_t> sizes;      // examples of each inform
  std::vector<RowOrigin> origins;  // of all examples, with keep_origins
  // Instead of them, if the examples come from a store.
  std::shared_ptr<const StoredOrigins> stored_origins;
  DatasetReport report;
  std::unordered_set<uint64_t> seen;         // digests of the rows' words, with deduplicate
  std::shared_ptr<const WordRuns> repeated;  // of the evaluation data; null: not asked for
};

class ExampleStream;
class PackedStream;

// In memory, mapped from a token store, or a stream: then the examples are numbered by their rows, some rows have no
// example, and what needs all examples is refused.
class Dataset {
 public:
  // Throws UserError for a missing file, a broken row, a row without its field, or if there is nothing to train on.
  // Logs how much was found, cut, dropped and split.
  static Dataset build(const DatasetOptions& options, const Prepare& prepare);
  // The part of build() that follows reading: mixes and packs.
  static Dataset assemble(const DatasetOptions& options, ReadExamples read);

  int64_t size() const;  // examples in an epoch; of a packed stream an estimate
  // The index of the example at a place of an epoch, in constant time; for one thread at a time. Bug: a packed stream.
  int64_t index(int64_t epoch, int64_t position) const;
  // Each once. UserError: of a stream, because who asks needs all of them.
  int64_t examples_count() const;
  // An example by its index. It is put together anew by every call. Several threads may call at once, but only one if
  // it is a stream. UserError: of a stream, the row has no example, or is bad.
  Example at(int64_t index) const;
  // The same, but nothing if the row of a stream has no example.
  std::optional<Example> find(int64_t index) const;
  // Of a stream: the same without counting the row in the report; nothing if it is bad.
  std::optional<Example> look_at(int64_t index) const;
  // Of a stream whose rows several ranks share: UserError if all of them have skipped more bad rows than allowed.
  void check_skipped(int64_t count) const;
  bool is_stream() const { return stream_ != nullptr; }
  // Of a stream whose rows are packed, where all its examples come from; null: another dataset.
  PackedStream* packed_stream() const { return packed_stream_.get(); }
  // Tells a stream which indices find() will be asked for, in this order, after those that it was told before, or
  // instead of them.
  void announce(std::span<const int64_t> indices, bool anew) const;
  // How a stream is shuffled, or documents are packed, if one window does not hold everything: "27x371"; empty: as
  // always.
  const std::string& windows() const { return windows_; }
  int64_t tokens_of(int64_t index) const;
  int64_t labels_of(int64_t index) const;
  // Gives an example numbers of a method's own, one for each of its sequences; not while other threads read.
  void add_numbers(int64_t index, const std::string& name, std::span<const float> numbers);
  // Of a stream these are estimates from its first rows.
  int64_t tokens() const;   // in an epoch
  int64_t labels() const;   // in an epoch
  int64_t longest() const;  // tokens of the longest example
  // Of a stream: of where its rows are and of the options' settings. Else of all examples' tokens, labels, lengths and
  // weights, and of how they are packed; equal for equal data.
  const std::string& fingerprint() const { return fingerprint_; }
  // Of a stream: of the rows that it was asked for until now.
  const DatasetReport& report() const;
  // What is said before the first step: of a stream, of its first rows.
  const DatasetReport& first_report() const { return stream_ ? first_report_ : report_; }
  // Of a stream: rows that were asked for to plan the run will be asked for again.
  void forget_report();
  // With keep_origins: the rows that the sequences of an example come from, by numbers of the dataset's own. In rows
  // packed as one stream only the first document of each row is known.
  std::vector<int64_t> rows_of(const Example& example) const;
  // Where rows are. Ask for many at once: of a store, each call may read the files up to the last of them.
  std::vector<RowOrigin> origins(std::span<const int64_t> rows) const;

 private:
  // Numbers that were added to the examples.
  struct Added {
    std::string name;
    std::vector<int64_t> begins;  // of each example, in `numbers`; -1: it has none
    std::vector<float> numbers;
  };
  Dataset(const DatasetOptions& options, ReadExamples read);
  Dataset(const DatasetOptions& options, std::shared_ptr<ExampleStream> stream);
  void pack(const DatasetOptions& options, const EpochOrder& documents);
  template <class Count>
  int64_t sum_of_epoch(int64_t of_all, Count count) const;

  std::shared_ptr<ExampleStream> stream_;  // null: not a stream
  std::shared_ptr<PackedStream> packed_stream_;
  int64_t rows_of_packed_stream_ = 0;  // in an epoch; an estimate unless a schedule of weights ends it
  std::string windows_;
  struct FirstRows {
    int64_t rows = 0, tokens = 0, labels = 0, longest = 0;
  } first_rows_;            // of a stream
  ExampleBlocks examples_;  // or documents, if they are packed
  std::optional<PackedRows> packed_;
  std::optional<PackedEpochs> packed_epochs_;
  EpochOrder order_;
  DatasetReport report_, first_report_;
  std::vector<RowOrigin> origins_;  // of the rows, which the column "row" numbers
  std::shared_ptr<const StoredOrigins> stored_origins_;
  std::vector<Added> added_;
  bool repeats_ = false;  // an epoch has some examples more often than others
  std::string fingerprint_;
};

// Reads and prepares the first rows of each inform, and throws what Dataset::build would throw because of them.
void check_first_rows(const DatasetOptions& options, const Prepare& prepare);

}  // namespace easydel::data
