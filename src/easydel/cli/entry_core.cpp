// What libeasydel_core.so gives: the bodies behind elarge/core.h.
#include "easydel/base/error.h"
#include "easydel/cli/torch_report.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/session_core.h"

namespace easydel::cli {
namespace {

class TorchCore final : public elarge::Core {
 public:
  std::unique_ptr<elarge::Session> open(const elarge::Config& config) override { return elarge::open_session(config); }
  void probe_logits(const elarge::ProbeLogits&) override { refuse("probe logits", "is not built yet"); }
  void probe_replay(const elarge::ProbeReplay&) override { refuse("probe replay", "is not built yet"); }
  std::string doctor(double peak_gflops) override { return doctor_core(peak_gflops); }
};

}  // namespace
}  // namespace easydel::cli

extern "C" easydel::elarge::Core* easydel_core_entry() {
  static easydel::cli::TorchCore core;
  return &core;
}
