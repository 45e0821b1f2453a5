// Packed rows of documents that are read while the run goes on: a window of documents is read, packed and used, while
// the next one is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "easydel/data/example_stream.h"
#include "easydel/data/packed_order.h"

namespace easydel::data {

// Where a run of packed rows stands. Of an update that was made, the place after its last row, so that the next one
// begins there whatever came before.
struct PackedPlace {
  int64_t epoch = 0;
  int64_t rows = 0;    // of the epoch that came before
  int64_t window = 0;  // place of the window in the epoch
  int64_t row = 0;     // place in the window
  // With a schedule of weights: how many documents of each source the windows before this one have.
  std::vector<int64_t> drawn = {};
  bool operator==(const PackedPlace&) const = default;
};

// Used by one thread at a time. Memory: the tokens of two windows of documents.
class PackedStream {
 public:
  // The options pack. From now on the stream is this object's alone.
  PackedStream(std::shared_ptr<ExampleStream> stream, const DatasetOptions& options);
  ~PackedStream();

  // The next rows: `count`, or fewer at the end of an epoch, but at least one; `place` moves behind them.
  // `max_updates`: of an epoch; 0: as many as it has. UserError: a row cannot be read, or an epoch has no rows at all.
  std::vector<Example> update(PackedPlace& place, int64_t count, int64_t max_updates = 0);
  // Of the documents that the windows had until now.
  const DatasetReport& report() const { return report_; }
  int64_t windows() const { return order_.windows(); }

 private:
  struct Window {
    int64_t number = 0;
    std::vector<int64_t> drawn;  // as PackedPlace's, of the window after it
    ExampleBlocks documents;
    std::optional<PackedRows> rows;
    DatasetReport report;  // of the stream at its end
  };
  const Window& window_at(const PackedPlace& place);
  // `rows`: before the window.
  std::unique_ptr<Window> made(int64_t number, int64_t rows, std::vector<int64_t> drawn);
  void stop();
  int64_t next_window(const PackedPlace& place) const;

  const std::shared_ptr<ExampleStream> stream_;
  const Packing packing_;
  const int64_t row_length_, window_documents_;
  const int64_t scheduled_update_;  // rows of an update, if a schedule of weights decides the windows; else 0
  const EpochOrder documents_;      // in the order of the first epoch, which all epochs pack
  const PackedOrder order_;
  DatasetReport report_;
  std::unique_ptr<Window> current_;
  std::atomic<bool> stops_ = false;
  int64_t ahead_number_ = -1;
  std::future<std::unique_ptr<Window>> ahead_;  // the window of this number, while it is made
};

}  // namespace easydel::data
