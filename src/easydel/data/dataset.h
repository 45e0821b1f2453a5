// A dataset in memory as examples: read, prepared by the method, packed, mixed; and the order in which an epoch uses
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "easydel/data/epoch_order.h"
#include "easydel/data/example.h"
#include "easydel/data/mixture_config.h"
#include "easydel/data/packing.h"
#include "easydel/data/row_kinds.h"

namespace easydel::data {

struct Prepared {
  std::optional<Example> example;  // nullopt: no labels; counted as dropped
  int64_t cut_tokens = 0;          // what truncation took
};
// How a method turns a row into an example. Called from several threads at once.
using Prepare = std::function<Prepared(const TypedRow&)>;

struct DatasetOptions {
  std::vector<InformConfig> informs;
  std::string section = "mixture.informs";  // their section, for messages
  std::string target_field = "text";
  std::vector<double> weights;  // of the block mixture, one for each inform; empty: equal
  BlockMixture mixture;
  Packing packing = Packing::none;
  int64_t row_length = 0;  // of packed rows
  bool shuffle_documents = false;
  bool shuffled = false;
  uint64_t seed = 0;
  std::function<void(int64_t rows)> on_rows = {};  // called now and then with the number of rows prepared so far
};

struct DatasetReport {
  int64_t rows = 0, dropped = 0, cut_rows = 0, cut_tokens = 0;
  PackingReport packing;
};

class Dataset {
 public:
  // Throws UserError for a missing file, a broken row, a row without its field, or if there is nothing to train on.
  // Logs how much was found, cut, dropped and split.
  static Dataset build(const DatasetOptions& options, const Prepare& prepare);

  int64_t size() const { return order_.size(); }  // examples in an epoch
  std::vector<int64_t> epoch(int64_t epoch) const { return order_.epoch(epoch); }
  int64_t examples_count() const { return int64_t(examples_.size()); }  // each once
  const Example& at(int64_t index) const { return examples_[size_t(index)]; }
  std::vector<Example>& examples() { return examples_; }
  int64_t tokens() const;   // in an epoch
  int64_t labels() const;   // in an epoch
  int64_t longest() const;  // tokens of the longest example
  // Of everything in it; equal for equal data.
  std::string fingerprint() const;
  const DatasetReport& report() const { return report_; }

 private:
  Dataset(std::vector<Example> examples, EpochOrder order, DatasetReport report)
      : examples_(std::move(examples)), order_(std::move(order)), report_(report) {}
  std::vector<Example> examples_;
  EpochOrder order_;
  DatasetReport report_;
};

// Reads and prepares the first rows of each inform, and throws what Dataset::build would throw because of them.
void check_first_rows(const DatasetOptions& options, const Prepare& prepare);

}  // namespace easydel::data
