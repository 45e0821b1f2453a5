#include "easydel/elarge/session_core.h"

#include "easydel/base/error.h"

namespace easydel::elarge {
namespace {

class TorchSession final : public Session {
 public:
  explicit TorchSession(const Config& config) : config_(config) {}
  void train(const Output&) override { refuse("train", "is not built yet"); }
  std::vector<Generated> generate(const GenerateRequest&) override { refuse("generate", "is not built yet"); }

 private:
  Config config_;
};

}  // namespace

std::unique_ptr<Session> open_session(const Config& config) { return std::make_unique<TorchSession>(config); }

}  // namespace easydel::elarge
