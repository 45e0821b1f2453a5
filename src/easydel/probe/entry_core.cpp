// The entry points of libeasydel_core.so for probes: implementations of probe/core.h.
#include "easydel/base/files.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/session_core.h"
#include "easydel/probe/core.h"
#include "easydel/probe/engine_lines.h"
#include "easydel/probe/logits.h"
#include "easydel/probe/replay.h"
#include "easydel/probe/rollout_lines.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

class TorchCore final : public Core {
 public:
  void logits(const LogitsRequest& request) override {
    LogitsOptions options;
    if (request.trace) options.trace = *request.trace;
    options.device = request.device;
    options.dtype = request.dtype;
    options.quantization = elarge::quantization_of(request.quantization);
    options.cache_format = request.cache_format;
    options.attention = request.attention;
    options.moe_method = request.moe_method;
    options.adapters = request.adapters;
    options.merged = request.merged;
    probe::logits(request.model, request.inputs, request.output, options);
  }
  void engine(const EngineRequest& request, const elarge::Output& out) override { engine_lines(request, out); }
  void rollout(const RolloutRequest& request, const elarge::Output& out) override { rollout_lines(request, out); }
  void replay(const ReplayRequest& request) override {
    const Replay replay = probe::replay(request.test_case, request.root);
    files::write(request.output, replay.lines);
    if (request.parameters) files::write(*request.parameters, replay.parameters);
    if (request.generations) files::write(*request.generations, replay.generations);
  }
  const std::vector<VectorKind>& vector_kinds() override { return core_vector_kinds(); }
};

}  // namespace
}  // namespace easydel::probe

extern "C" easydel::probe::Core* easydel_probe_entry() {
  easydel::elarge::core();  // first, because it installs the allocator of tensors
  static easydel::probe::TorchCore core;
  return &core;
}
