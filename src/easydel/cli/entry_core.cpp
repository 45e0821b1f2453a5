// What libeasydel_core.so gives: the bodies behind elarge/core.h.
#include <set>

#include "easydel/base/files.h"
#include "easydel/cli/describe_mesh.h"
#include "easydel/cli/torch_report.h"
#include "easydel/cli/vectors.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/session_core.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/models/plugin.h"
#include "easydel/models/probe_logits.h"
#include "easydel/tensor/memory.h"
#include "easydel/train/probe_replay.h"

namespace easydel::cli {
namespace {

class TorchCore final : public elarge::Core {
 public:
  std::unique_ptr<elarge::Session> open(const elarge::Config& config, bool trains) override {
    return elarge::open_session(config, trains);
  }
  void check(const elarge::Config& config, int64_t ranks, bool trains) override {
    elarge::check_session(config, ranks, trains);
  }
  void probe_logits(const elarge::ProbeLogits& probe) override {
    models::ProbeOptions options;
    if (probe.trace) options.trace = *probe.trace;
    options.device = probe.device;
    options.dtype = probe.dtype;
    options.quantization = elarge::quantization_of(probe.quantization, false);
    options.attention = probe.attention;
    options.moe_method = probe.moe_method;
    models::probe_logits(probe.model, probe.inputs, probe.output, options);
  }
  void probe_replay(const elarge::ProbeReplay& probe) override {
    const train::Replay replay = train::replay(probe.test_case, probe.root);
    files::write(probe.output, replay.lines);
    if (probe.parameters) files::write(*probe.parameters, replay.parameters);
  }
  std::vector<elarge::PlannedTensor> plan_model(const Value& config, const Where& where) override {
    const auto table = models::plan_parameters(config, where);
    std::vector<elarge::PlannedTensor> out;
    std::set<std::string> seen;  // several parameters may be parts of one tensor
    for (const nn::Entry& entry : table->entries()) {
      const nn::Source& source = entry.source;
      if (source.tensors.empty()) out.push_back({entry.path, entry.shape});
      for (const std::string& name : source.tensors)
        if (seen.insert(name).second) out.push_back({name, source.file_shape(entry.shape)});
    }
    return out;
  }
  std::string describe_mesh(const elarge::MeshPlan& plan) override { return describe_mesh_core(plan); }
  void load_plugin(const std::filesystem::path& file) override { models::load_plugin(file); }
  const std::vector<elarge::VectorKind>& vector_kinds() override { return core_vector_kinds(); }
  std::string doctor(double peak_gflops) override { return doctor_core(peak_gflops); }
};

}  // namespace
}  // namespace easydel::cli

extern "C" easydel::elarge::Core* easydel_core_entry() {
  easydel::tensor::use_kept_memory();  // before the first tensor
  static easydel::cli::TorchCore core;
  return &core;
}
