// The entry points of libeasydel_core.so: implementations of elarge/core.h.
#include <set>

#include "easydel/elarge/compare_predictions.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/describe_mesh.h"
#include "easydel/elarge/plugin.h"
#include "easydel/elarge/session_core.h"
#include "easydel/elarge/torch_report.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/tensor/memory.h"

namespace easydel::elarge {
namespace {

class TorchCore final : public Core {
 public:
  std::unique_ptr<Session> open(const Config& config, bool trains) override { return open_session(config, trains); }
  void check(const Config& config, int64_t ranks, Purpose purpose) override { check_session(config, ranks, purpose); }
  data::RunData run_data(const Config& config) override { return elarge::run_data(config); }
  std::vector<PlannedTensor> plan_model(const Value& config, const Where& where) override {
    const auto table = models::plan_parameters(config, where);
    std::vector<PlannedTensor> out;
    std::set<std::string> seen;  // several parameters may be parts of one tensor
    for (const nn::Entry& entry : table->entries()) {
      const nn::TensorSource& source = entry.source;
      if (source.tensors.empty()) out.push_back({entry.path, entry.shape});
      for (const std::string& name : source.tensors)
        if (seen.insert(name).second) out.push_back({name, source.file_shape(entry.shape)});
    }
    return out;
  }
  void compare_predictions(Session& session, Session& other, const std::vector<std::string>& windows,
                           const OnLineAnswer& on_answer) override {
    elarge::compare_predictions(*session.build_model(), *other.build_model(), windows, on_answer);
  }
  std::string describe_mesh(const MeshPlan& plan) override { return describe_mesh_core(plan); }
  void merge(const MergeRequest& request) override { merge_core(request); }
  void load_plugin(const std::filesystem::path& file) override { elarge::load_plugin(file); }
  std::string doctor(double peak_gflops) override { return doctor_core(peak_gflops); }
};

}  // namespace
}  // namespace easydel::elarge

extern "C" easydel::elarge::Core* easydel_core_entry() {
  easydel::tensor::use_kept_memory();  // before the first tensor
  static easydel::elarge::TorchCore core;
  return &core;
}
