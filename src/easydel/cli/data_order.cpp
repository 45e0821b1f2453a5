// `easydel data order`: which rows each update of a run learns from; and how the data commands open a run.
#include <charconv>

#include "easydel/base/error.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/data.h"
#include "easydel/data/packed_stream.h"
#include "easydel/elarge/builder.h"
#include "easydel/elarge/overrides.h"

namespace easydel::cli {
namespace {

struct Steps {
  int64_t first = 1, last = 1;  // from 1
};

Steps steps_of(const std::string& text) {
  const size_t dots = text.find("..");
  const auto number = [&](std::string_view word) {
    int64_t out = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
    if (error != std::errc() || end != word.data() + word.size() || out < 1)
      refuse("--steps", "'" + text + "' is not a range of updates",
             "for example 100..120, or 7; the first update is 1");
    return out;
  };
  const std::string_view view = text;
  Steps out;
  out.first = number(view.substr(0, std::min(dots, view.size())));
  out.last = dots == std::string::npos ? out.first : number(view.substr(dots + 2));
  if (out.last < out.first) refuse("--steps", "'" + text + "' ends before it begins", "for example 100..120");
  return out;
}

// Prints a line for each example.
class Lines {
 public:
  Lines(const data::Dataset& dataset, const data::RunData& data)
      : dataset_(dataset), names_(data::names_of(data.training->informs)) {}

  void add(int64_t step, const data::Example& example) {
    const std::vector<int64_t> rows = dataset_.rows_of(example);
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    lines_.push_back({step, rows_.size()});
    // Places of a store's rows are found together.
    if (rows_.size() >= (dataset_.is_stream() ? 1 : rows_together)) flush();
  }
  void flush() {
    const std::vector<data::RowOrigin> origins = dataset_.origins(rows_);
    std::string out;
    size_t at = 0;
    for (const Line& line : lines_) {
      out += std::to_string(line.step);
      std::string before;
      for (; at < line.end; ++at) {
        const std::string place = "\t" + names_[origins[at].inform] + "\t" + origins[at].where;
        if (place != before) out += before = place;  // the sequences of a pair are one row
      }
      out += "\n";
    }
    print(out);
    rows_.clear(), lines_.clear();
  }

 private:
  static constexpr size_t rows_together = size_t{1} << 20;
  struct Line {
    int64_t step;
    size_t end;  // in rows_
  };
  const data::Dataset& dataset_;
  const std::vector<std::string> names_;
  std::vector<int64_t> rows_;
  std::vector<Line> lines_;
};

}  // namespace

data::RunData open_run_data(const DataCommand& command) {
  if (command.file.empty())
    refuse("easydel data " + command.command, "no file given",
           "name the file of the run: easydel data " + command.command + " run.yaml");
  config::Problems problems(command.file);
  std::optional<Value> document = elarge::config_of(parse_file(command.file), problems);  // actions do not matter here
  problems.throw_if_any();
  const elarge::Config config = elarge::read_config(std::move(*document), problems, elarge::overrides_of(command.set));
  problems.throw_if_any();
  return elarge::core().run_data(config);
}

int run_data_order(const DataCommand& command) {
  const Steps steps = steps_of(command.steps);
  data::RunData data = open_run_data(command);
  if (!data.training) refuse("mixture.informs", "there is no data to train on", "give an inform with split: train");
  data.training->keep_origins = true;
  const data::Dataset dataset = data::Dataset::build(*data.training, data.prepare);
  Lines lines(dataset, data);
  const int64_t update = data.examples_per_update;
  if (data::PackedStream* const packed = dataset.packed_stream()) {
    data::PackedPlace place;
    for (int64_t step = 1; step <= steps.last; ++step) {
      const std::vector<data::Example> examples = packed->update(place, update, data.max_steps_in_epoch.value_or(0));
      if (step >= steps.first)
        for (const data::Example& example : examples) lines.add(step, example);
    }
    return lines.flush(), 0;
  }
  int64_t in_epoch = (dataset.size() + update - 1) / update;
  if (data.max_steps_in_epoch) in_epoch = std::min(in_epoch, *data.max_steps_in_epoch);
  for (int64_t step = steps.first; step <= steps.last; ++step) {
    const int64_t epoch = (step - 1) / in_epoch;
    const int64_t begin = (step - 1) % in_epoch * update;
    for (int64_t i = begin; i < std::min(begin + update, dataset.size()); ++i)
      if (const std::optional<data::Example> example = dataset.find(dataset.index(epoch, i))) lines.add(step, *example);
  }
  return lines.flush(), 0;
}

}  // namespace easydel::cli
