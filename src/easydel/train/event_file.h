// TensorBoard's event files: records of protocol buffers (tensorflow/core/util/event.proto, tensorboard's
// summary.proto) in TFRecord's frames. One file a run. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::train {

// How often values lie between limits: `counts[i]` of them in (limits[i - 1], limits[i]], the first one from below.
struct Histogram {
  double min = 0, max = 0, sum = 0, sum_of_squares = 0;
  int64_t values = 0;
  std::vector<double> limits;
  std::vector<int64_t> counts;
};

class EventFile {
 public:
  // `folder`/events.out.tfevents.0.easydel. Going on from a step keeps the events up to it, so that no curve is drawn
  // twice; from_step 0 begins anew.
  EventFile(const std::filesystem::path& folder, int64_t from_step);
  ~EventFile();

  // Every number of a record of metrics.jsonl, under its name, at the record's step; JSON's integers are numbers, too.
  // What cannot be written is warned of once, and lost.
  void add(const Value& record);
  void add_text(int64_t step, std::string_view tag, std::string_view text);
  void add_histogram(int64_t step, std::string_view tag, const Histogram& histogram);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace easydel::train
