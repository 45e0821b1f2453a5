#include "easydel/models/adapters.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/models/adapter.h"
#include "easydel/models/heads.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

std::atomic<uint64_t> last_version = 0;

// The parameters of an adapter, in a table of the model's layers that has no values but these.
struct Parts {
  nn::ParameterTable table;
  std::shared_ptr<Adapter> adapter;
};

[[noreturn]] void refuse_part(const fs::path& folder, const std::string& what) {
  refuse(folder.string(), what, "give it alone: lora.adapter, or --adapter with a folder");
}

// Builds the model's layers once more, without values, so that the adapter's rules find its layers and its file is
// checked.
std::shared_ptr<Parts> read_parts(const Model& model, const fs::path& folder) {
  auto out = std::make_shared<Parts>();
  AdapterOptions options = adapter_in(folder);
  options.config.dropout = 0;  // only a training model drops out
  Adapter& adapter = *(out->adapter = std::make_shared<Adapter>(std::move(options)));
  nn::Building building{
      .table = out->table, .compute = model.compute_type(), .place = {}, .fill = {}, .weight_policies = {}, .head = {}};
  building.weight_policies.push_back(out->adapter);
  building.fill = [&](nn::Entry& entry, const nn::Initial&, const std::vector<nn::TensorSource>&) {
    entry.trainable = false;
    if (adapter.owns(entry)) {
      adapter.fill(entry, [] { return Tensor(); });
      if (entry.shard.defined()) entry.shard = entry.shard.to(model.device());
      return;
    }
    if (adapter.match_base(entry).empty()) return;
    // PEFT saves an adapted embedding as it is in the model. fill_base takes other values only.
    const Tensor own = model.parameters().find(entry.path)->shard;
    entry.shard = own;
    if (own.defined()) adapter.fill_base(entry);
    if (!own.is_same(entry.shard)) refuse_part(folder, str("has other values of ", entry.path, " than the model"));
    entry.shard = Tensor();
  };
  const ConfigReader reader(model.config(), FilePlace{(model.folder() / "config.json").string()});
  build_model(family_of(reader), reader, building);
  adapter.finish();
  for (const nn::Entry& entry : out->table.entries())
    if (!entry.adapter && adapter.learns(entry))
      refuse_part(folder, str("trains ", entry.path, ", which adapters chosen by prompt cannot change"));
  return out;
}

}  // namespace

Adapters::Adapters(std::shared_ptr<const Model> model) : model_(std::move(model)) {
  const std::string where = model_->folder().string();
  if (!model_->adapters().empty())
    refuse(where, "has an adapter already, and adapters that are chosen by prompt stand alone",
           "name the model itself, and all adapters in the section adapters");
  if (model_->team().mesh().ranks() > 1)
    refuse(where, "adapters chosen by prompt on several ranks are not built yet", "run one rank");
  check(model_->adapter_slots() != nullptr, "adapters: the model was loaded to be copied");
}

Adapters::Held Adapters::load(const std::string& name, const fs::path& folder) const {
  const std::shared_ptr<Parts> parts = read_parts(*model_, folder);
  const auto& slots = model_->adapter_slots()->slots();
  std::vector<nn::LoadedAdapter::Part> of_slots(slots.size());
  for (const Adapter::Layer& layer : parts->adapter->layers()) {
    const auto found = std::ranges::find(slots, layer.module, &nn::AdapterSlots::Slot::module);
    check(found != slots.end(), "adapters: no layer ", layer.module);
    if (layer.own && (layer.shared || found->entry->head))
      refuse_part(folder,
                  str("trains ", layer.module, " in full, which is not built yet for adapters chosen by prompt"));
    nn::LoadedAdapter::Part& part = of_slots[size_t(found - slots.begin())];
    part.weight = layer.own
                      ? nn::replacing_adapter(layer.own.entry().weight)
                      : nn::low_rank_adapter(found->base, nn::Parameter(found->entry), layer.parts, layer.embedding);
    for (const nn::HeadRows& rows : found->heads) part.heads.push_back(part.weight->by_head(rows));
  }
  const uint64_t version = ++last_version;
  const Info info{name, version, folder, parts->adapter->options().config.r};
  return {std::make_shared<nn::LoadedAdapter>(name, version, std::move(of_slots), parts), info};
}

std::string Adapters::names() const {
  std::vector<std::string> all;
  for (const auto& [name, held] : held_) all.push_back(name);
  return all.empty() ? "there are none" : str("known: ", join(all, ", "));
}

Adapters::Loaded Adapters::add(const std::string& name, const fs::path& folder) {
  const auto refuse_taken = [&] {
    refuse(str("adapters.", name), "an adapter of this name is loaded already",
           "replace or remove it, or give another name");
  };
  if (find(name)) refuse_taken();
  Held held = load(name, folder);
  const std::scoped_lock lock(mutex_);
  const auto [at, added] = held_.emplace(name, std::move(held));
  if (!added) refuse_taken();
  return at->second.adapter;
}

Adapters::Loaded Adapters::replace(const std::string& name, const fs::path& folder) {
  Held held = load(name, folder);
  Loaded out = held.adapter;
  const std::scoped_lock lock(mutex_);
  std::swap(held_[name], held);
  return out;
}

void Adapters::remove(std::string_view name) {
  Held removed;  // freed after the lock
  const std::scoped_lock lock(mutex_);
  const auto at = held_.find(name);
  if (at == held_.end()) refuse(str("adapters.", name), "no adapter of this name is loaded", names());
  removed = std::move(at->second);
  held_.erase(at);
}

Adapters::Loaded Adapters::find(std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  const auto at = held_.find(name);
  return at == held_.end() ? nullptr : at->second.adapter;
}

Adapters::Loaded Adapters::get(std::string_view name, const std::string& where) const {
  const std::scoped_lock lock(mutex_);
  const auto at = held_.find(name);
  if (at == held_.end()) refuse(where, str("no adapter is called '", name, "'"), names());
  return at->second.adapter;
}

std::vector<Adapters::Info> Adapters::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Info> out;
  for (const auto& [name, held] : held_) out.push_back(held.info);
  return out;
}

}  // namespace easydel::models
