// The examples of a dataset that is not kept: rows are read and prepared by threads shortly before they are needed.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/data/numbered_rows.h"

namespace easydel::data {

// Used by one thread at a time; the threads that prepare are its own.
class ExampleStream {
 public:
  // UserError: a file is missing or packed, or the options ask for what needs all rows.
  ExampleStream(DatasetOptions options, Prepare prepare);
  ~ExampleStream();

  int64_t rows() const;      // each once
  EpochOrder order() const;  // of the rows; if they are packed, of the documents
  const std::string& windows_text() const { return windows_text_; }
  std::string shuffle_text() const;  // how rows are shuffled, and what would help
  const std::string& fingerprint() const { return fingerprint_; }
  // As Dataset's.
  std::optional<Example> find(int64_t row);
  std::optional<Example> look_at(int64_t row);
  void check_skipped(int64_t count) const;
  void announce(std::span<const int64_t> rows, bool anew);
  RowOrigin origin(int64_t row);
  const DatasetReport& report() const { return report_; }
  void forget_report() {
    report_ = {};
    report_.copies = copies_;
  }

 private:
  // A row that was announced.
  struct Task {
    int64_t row = 0;
    bool is_begun = false, is_done = false;
    std::optional<PreparedRow> made;
    std::exception_ptr failure;
  };
  bool shuffles_rows() const;
  std::string leave_out_copies(std::string description, int64_t threads);
  std::pair<NumberedRows*, int64_t> place_of(int64_t row) const;
  void work(const std::stop_token& stop);
  std::optional<PreparedRow> take(int64_t row);
  void note(const PreparedRow& row);

  const DatasetOptions options_;
  const std::shared_ptr<const WordRuns> evaluated_;  // null: rows are not compared with evaluation data
  const Prepare prepare_;
  std::vector<std::unique_ptr<NumberedRows>> sources_;  // of a mixture one for each inform, else one
  std::vector<int64_t> sizes_, begins_;
  std::vector<Windows> windows_;
  std::string windows_text_, fingerprint_;
  DatasetReport report_;
  int64_t copies_ = 0;  // that are left out

  std::mutex mutex_;
  std::condition_variable_any announced_;
  std::condition_variable done_;
  std::deque<std::shared_ptr<Task>> tasks_;  // in the order in which find() takes them
  std::vector<std::jthread> workers_;
};

// What the mixture's keys say of a stream; nullopt: the run keeps its tokens.
std::optional<StreamOptions> stream_options(const MixtureConfig& mixture);

// Whether rows are read while the run goes on: the options ask for it, and there is as much input as they want it for.
// UserError: a file is missing.
bool is_streamed(const DatasetOptions& options);

// The stream that the options ask for; null: they ask for none, or there is less input than they want one for.
// UserError as ExampleStream.
std::shared_ptr<ExampleStream> open_stream(const DatasetOptions& options, const Prepare& prepare);

}  // namespace easydel::data
