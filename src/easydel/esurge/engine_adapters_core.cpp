// Adapters of the engine's requests.
#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/esurge/step_engine_parts.h"

namespace easydel::esurge {

models::Adapters& StepEngine::Parts::adapters_of_model() {
  const std::lock_guard lock(mutex);
  if (!adapters) adapters = std::make_unique<models::Adapters>(setup.model);
  return *adapters;
}

void StepEngine::Parts::choose_adapter(LiveRequest& request, SchedulerRequest& scheduled) const {
  const std::optional<std::string>& name = request.prepared.request.sampling.adapter;
  if (!name) return;
  if (!adapters) refuse("adapter", str("'", *name, "' is not loaded"), "load it, or leave the key out");
  request.adapter = adapters->get(*name, "adapter");
  scheduled.root.adapter = *name;
  scheduled.root.adapter_version = int64_t(request.adapter->version());
  if (request.fingerprint.empty()) return;
  const auto digest = adapter_digests.find(request.adapter->version());
  request.fingerprint +=
      digest != adapter_digests.end() ? str("+", digest->second) : str("+version_", request.adapter->version());
}

void StepEngine::Parts::refuse_adapters() const {
  const std::lock_guard lock(mutex);
  if ((adapters && !adapters->list().empty()) ||
      std::ranges::any_of(live, [](const auto& entry) { return entry.second->adapter != nullptr; }))
    refuse("model", "another model cannot take over while adapters of the present one are loaded or used",
           "unload them first, or change the weights in place");
}

int64_t StepEngine::load_adapter(const std::string& name, const std::filesystem::path& folder, bool replace) {
  Parts& p = *parts_;
  models::Adapters& adapters = p.adapters_of_model();
  const models::Adapters::Loaded loaded = replace ? adapters.replace(name, folder) : adapters.add(name, folder);
  const std::string digest = files::sha256(files::sha256_of_file(folder / "adapter_config.json") +
                                           files::sha256_of_file(folder / "adapter_model.safetensors"));
  const std::lock_guard lock(p.mutex);
  p.adapter_digests[loaded->version()] = digest.substr(0, 16);
  return int64_t(loaded->version());
}

void StepEngine::unload_adapter(const std::string& name) {
  models::Adapters& adapters = parts_->adapters_of_model();
  adapters.remove(name);
}

std::vector<AdapterInfo> StepEngine::adapters() const {
  const Parts& p = *parts_;
  const std::lock_guard lock(p.mutex);
  std::vector<AdapterInfo> out;
  if (!p.adapters) return out;
  for (const models::Adapters::Info& one : p.adapters->list()) {
    AdapterInfo& info = out.emplace_back(AdapterInfo{one.name, one.folder, int64_t(one.version), one.r, 0});
    for (const auto& [id, request] : p.live)
      info.requests += request->adapter && request->adapter->version() == one.version;
  }
  return out;
}

}  // namespace easydel::esurge
