#include "easydel/models/adapters.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/models/adapter.h"
#include "easydel/models/heads.h"
#include "easydel/nn/placement.h"
#include "easydel/nn/shards.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

std::atomic<uint64_t> last_version = 0;

[[noreturn]] void refuse_part(const fs::path& folder, const std::string& what) {
  refuse(folder.string(), what, "give it alone: lora.adapter, or --adapter with a folder");
}

}  // namespace

struct Adapters::Parts {
  nn::ParameterTable table;          // no values but the adapter's
  std::shared_ptr<Adapter> adapter;  // null: a sum
  std::vector<Adapter::Layer> layers;
};

uint64_t Adapters::next_version() { return ++last_version; }

Adapters::Adapters(std::shared_ptr<const Model> model) : model_(std::move(model)) {
  const std::string where = model_->folder().string();
  if (!model_->adapters().empty())
    refuse(where, "has an adapter already, and adapters that are chosen by prompt stand alone",
           "name the model itself, and all adapters in the section adapters");
  check(model_->adapter_slots() != nullptr, "adapters: the model was loaded to be copied");
}

// Builds the model's layers once more, without values, so that the adapter's rules find its layers and its file is
// checked.
std::shared_ptr<Adapters::Parts> Adapters::read_parts(const fs::path& folder) const {
  const Model& model = *model_;
  auto out = std::make_shared<Parts>();
  AdapterOptions options = adapter_in(folder);
  options.config.dropout = 0;  // only a training model drops out
  if (const LoraStart& start = options.config.init_lora_weights; start.changes_base())
    refuse_part(folder,
                str("changes the model's weights (init_lora_weights: ", config::Codec<LoraStart>::write(start).scalar,
                    "), which adapters chosen by prompt cannot"));
  const Where where = FilePlace{(model.folder() / "config.json").string()};
  if (needed_vocabulary({options}, model.config(), where) > model.vocabulary())
    refuse_part(folder, str("has tokens beyond the model's ", model.vocabulary(),
                            ", which is not built yet for adapters chosen by prompt"));
  Adapter& adapter = *(out->adapter = std::make_shared<Adapter>(std::move(options)));
  const std::shared_ptr<const collective::Team> team = model.parameters().entries().front().team;
  nn::Building building{.table = out->table,
                        .compute = model.compute_type(),
                        .team = team,
                        .place = {},
                        .fill = {},
                        .weight_policies = {},
                        .head = {}};
  building.weight_policies.push_back(out->adapter);
  const mesh::PartitionRules no_rules;
  int64_t dropped = 0;
  building.place = [&](nn::Entry& entry) {
    const nn::Entry* const own = model.parameters().find(entry.path);
    if (!own) return nn::place(entry, team, no_rules, dropped);
    entry.team = own->team, entry.layout = own->layout, entry.slice = own->slice;
  };
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
  const ConfigReader reader(model.config(), where);
  build_model(family_of(reader), reader, building);
  adapter.finish();
  for (const nn::Entry& entry : out->table.entries())
    if (!entry.adapter && adapter.learns(entry))
      refuse_part(folder, str("trains ", entry.path, ", which adapters chosen by prompt cannot change"));
  out->layers = adapter.layers();
  return out;
}

Adapters::Held Adapters::hold(const std::string& name, const fs::path& folder, std::shared_ptr<Parts> parts,
                              uint64_t version) const {
  const auto& slots = model_->adapter_slots()->slots();
  std::vector<nn::LoadedAdapter::Part> of_slots(slots.size());
  int64_t rank = 0;
  for (const Adapter::Layer& layer : parts->layers) {
    if (layer.stack.experts > 0)
      refuse_part(folder, str("changes ", layer.module,
                              ", and stacked experts are not built yet for adapters chosen "
                              "by prompt"));
    const auto found = std::ranges::find(slots, layer.module, &nn::AdapterSlots::Slot::module);
    check(found != slots.end(), "adapters: no layer ", layer.module);
    if (layer.own && (layer.shared || found->entry->head))
      refuse_part(folder,
                  str("trains ", layer.module, " in full, which is not built yet for adapters chosen by prompt"));
    if (layer.parts.b) rank = std::max(rank, layer.parts.b.entry().shape[1]);
    nn::LoadedAdapter::Part& part = of_slots[size_t(found - slots.begin())];
    if (!layer.rows.empty()) {
      part.weight = nn::rows_adapter(nn::Parameter(found->entry), layer.rows, layer.row_values);
      // An output layer that reads the embedding, and has no rows of its own.
      for (size_t slot = 0; slot < slots.size(); ++slot)
        if (slots[slot].shared && slots[slot].entry == found->entry && !of_slots[slot].weight && !layer.shared)
          of_slots[slot].weight = part.weight;
      continue;
    }
    part.weight = layer.own
                      ? nn::replacing_adapter(layer.own.entry().weight)
                      : nn::low_rank_adapter(found->base, nn::Parameter(found->entry), layer.parts, layer.embedding);
    for (const nn::HeadRows& rows : found->heads) part.heads.push_back(part.weight->by_head(rows));
  }
  return {std::make_shared<nn::LoadedAdapter>(name, version, std::move(of_slots), parts),
          {name, version, folder, rank},
          parts};
}

Adapters::Held Adapters::load(const std::string& name, const fs::path& folder) const {
  return hold(name, folder, read_parts(folder), next_version());
}

std::string Adapters::names() const {
  std::vector<std::string> all;
  for (const auto& [name, held] : held_) all.push_back(name);
  return all.empty() ? "there are none" : str("known: ", join(all, ", "));
}

void Adapters::refuse_taken(const std::string& name) const {
  if (find(name))
    refuse(str("adapters.", name), "an adapter of this name is loaded already",
           "replace or remove it, or give another name");
}

Adapters::Loaded Adapters::insert(Held held) {
  const std::string name = held.info.name;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto [at, added] = held_.try_emplace(name, std::move(held)); added) return at->second.adapter;
  }
  refuse_taken(name);
  return insert(std::move(held));  // the other one was removed in between
}

Adapters::Loaded Adapters::add(const std::string& name, const fs::path& folder, const Confirm& confirm) {
  refuse_taken(name);
  Held held = load(name, folder);
  if (confirm) confirm(held.adapter);
  return insert(std::move(held));
}

std::vector<Adapters::Share> Adapters::parts_of_sum(const std::string& name, AdapterSum::Kind kind,
                                                    const std::vector<AdapterSum::Share>& shares) const {
  refuse_taken(name);
  const std::string where = str("adapters.", name);
  std::vector<Share> out;
  for (const AdapterSum::Share& share : shares) {
    out.push_back({held(share.name, where).parts, share.weight});
    if (!std::isfinite(share.weight)) refuse(where, str(share.weight, " is not a weight"), "give a number");
  }
  std::map<std::string, int64_t> ranks;  // of layers, as the first share has them
  for (const auto& [parts, weight] : out)
    for (const Adapter::Layer& layer : parts->layers) {
      if (!layer.has_low_rank() || layer.parts.bias || layer.parts.magnitude)
        refuse(where,
               str("adds up more than products of A and B (", layer.module, " has DoRA, lora_bias, or a weight of ",
                   "its own)"),
               "merge such adapters: easydel merge");
      const int64_t own = layer.parts.b.entry().shape[1], rank = ranks.try_emplace(layer.module, own).first->second;
      if (kind == AdapterSum::Kind::linear && own != rank)
        refuse(where, str("linear adds adapters of one rank, and ", layer.module, " has ", rank, " and ", own),
               "cat adds those of different ranks");
    }
  return out;
}

Adapters::Loaded Adapters::add_sum(const std::string& name, AdapterSum::Kind kind,
                                   const std::vector<AdapterSum::Share>& shares, uint64_t version) {
  const std::vector<Share> added = parts_of_sum(name, kind, shares);
  const bool linear = kind == AdapterSum::Kind::linear;
  auto out = std::make_shared<Parts>();
  for (const nn::AdapterSlots::Slot& slot : model_->adapter_slots()->slots()) {
    Adapter::Layer layer;
    std::vector<Tensor> all_a, all_b;
    for (const auto& [parts, weight] : added) {
      const auto found = std::ranges::find(parts->layers, slot.module, &Adapter::Layer::module);
      if (found == parts->layers.end()) continue;
      layer = *found;
      // The rank is A's first dimension, of an embedding its second.
      const double by = weight * found->parts.scale, root = std::sqrt(std::fabs(by));
      const auto whole = [](const nn::Parameter& of) { return nn::whole_of(of.entry(), of.entry().shard); };
      const Tensor a = whole(found->parts.a), b = whole(found->parts.b);
      all_a.push_back(a * (linear ? std::copysign(root, by) : by));
      all_b.push_back(linear ? b * root : b);
    }
    if (all_a.empty()) continue;
    const auto joined = [&](const std::vector<Tensor>& of, int64_t dimension) {
      if (!linear) return at::cat(of, dimension);
      Tensor total = of.front();
      for (size_t i = 1; i < of.size(); ++i) total = total + of[i];
      return total;
    };
    const auto entry_of = [&](const char* leaf, const nn::Entry& like, const Tensor& values) {
      nn::Entry entry;
      entry.path = str(slot.module, ".", leaf);
      entry.shape = values.sizes().vec();
      entry.role = like.role, entry.split = like.split;
      entry.use = like.use, entry.use_dimension = like.use_dimension;
      entry.compute = model_->compute_type();
      entry.trainable = false, entry.adapter = true;
      int64_t dropped = 0;
      nn::place(entry, like.team, {}, dropped);
      entry.shard = like.team->size() == 1 ? values : like.team->cut(values, entry.layout).clone();
      nn::Entry& own = out->table.add(std::move(entry));
      own.forms = std::make_shared<nn::WeightForms>(nn::Parameter(&own));
      own.weight = nn::dense_weight(own.forms);
      return nn::Parameter(&own);
    };
    layer.parts.a = entry_of("lora_A", layer.parts.a.entry(), joined(all_a, layer.embedding ? 1 : 0));
    layer.parts.b = entry_of("lora_B", layer.parts.b.entry(), joined(all_b, 1));
    layer.parts.scale = 1;
    out->layers.push_back(std::move(layer));
  }
  return insert(hold(name, {}, std::move(out), version));
}

Adapters::Loaded Adapters::replace(const std::string& name, const fs::path& folder, const Confirm& confirm) {
  Held held = load(name, folder);
  if (confirm) confirm(held.adapter);
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
  return held(name, where).adapter;
}

Adapters::Held Adapters::held(std::string_view name, const std::string& where) const {
  const std::scoped_lock lock(mutex_);
  const auto at = held_.find(name);
  if (at == held_.end()) refuse(where, str("no adapter is called '", name, "'"), names());
  return at->second;
}

std::vector<Adapters::Info> Adapters::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Info> out;
  for (const auto& [name, held] : held_) out.push_back(held.info);
  return out;
}

}  // namespace easydel::models
