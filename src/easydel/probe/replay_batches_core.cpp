// Recorded micro-batches as the source of a run's examples.
#include <map>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"
#include "easydel/probe/replay_methods.h"

namespace easydel::probe {
namespace {

class Recorded final : public train::BatchSource {
 public:
  explicit Recorded(std::vector<std::vector<std::vector<data::Example>>> steps) : steps_(std::move(steps)) {}
  int64_t steps_in_epoch() const override { return int64_t(steps_.size()); }
  std::vector<train::MicroBatch> step(int64_t step) override {
    std::vector<train::MicroBatch> out;
    for (const auto& micro : steps_[size_t(step)]) {
      out.emplace_back();
      for (const data::Example& example : micro) out.back().push_back(&example);
    }
    return out;
  }
  Value cursor(int64_t) const override { return {}; }
  std::string fingerprint() const override { return "recorded"; }

 private:
  std::vector<std::vector<std::vector<data::Example>>> steps_;
};

}  // namespace

std::unique_ptr<train::BatchSource> read_recorded_batches(const std::filesystem::path& file,
                                                          const ReplayMethod& method) {
  std::map<int64_t, std::vector<std::vector<data::Example>>> steps;
  data::for_each_line(file, [&](std::string_view text, int64_t number) {
    const std::string where = str(file.string(), ":", number);
    const Value line = parse_json(text, where);
    const Value* step = line.find("step");
    if (!step || !step->as_int()) refuse(where, "has no step");
    steps[*step->as_int()].push_back(method.examples(line, where));
    return true;
  });
  std::vector<std::vector<std::vector<data::Example>>> out;
  for (auto& [step, micros] : steps) out.push_back(std::move(micros));
  if (out.empty()) refuse(file.string(), "holds no batches");
  return std::make_unique<Recorded>(std::move(out));
}

}  // namespace easydel::probe
