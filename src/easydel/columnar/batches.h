// Iterates over the record batches of a Parquet or Arrow file; knows nothing about rows.
#pragma once

#include <arrow/record_batch.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "easydel/columnar/columnar.h"

namespace easydel::columnar {

class Batches {
 public:
  // Reads only `columns`; empty: all. Batches that have no more than `rows_to_skip` rows are passed over, and their
  // rows counted down there; it must outlive the reading. UserError "file: ..." if the file is broken or has another
  // format.
  Batches(std::filesystem::path file, Form form, std::span<const std::string> columns, int64_t& rows_to_skip);
  // The next batch, fully validated; nullptr: end. UserError.
  std::shared_ptr<arrow::RecordBatch> next();
  int64_t rows_before() const { return before_; }  // of the file, before the batch that next() gave
  // Names of all columns of the file, and the index of each in a batch; -1: not read.
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<int>& places() const { return places_; }

 private:
  using Next = std::function<arrow::Result<std::shared_ptr<arrow::RecordBatch>>()>;
  arrow::Result<Next> open_parquet(std::span<const std::string> columns);
  arrow::Result<Next> open_arrow(std::span<const std::string> columns);
  std::vector<int> choose(const arrow::Schema& schema, std::span<const std::string> columns);

  std::filesystem::path file_;
  Form form_;
  int64_t& rows_to_skip_;
  int64_t before_ = 0, rows_ = 0;  // rows_: of the last batch
  std::vector<std::string> names_;
  std::vector<int> places_;
  Next next_;
};

// The number of rows of each row group or record batch. UserError: the file is broken or of another format.
std::vector<int64_t> rows_of_groups(const std::filesystem::path& file, Form form);

}  // namespace easydel::columnar
