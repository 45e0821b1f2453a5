// A model once more from the weights in memory: the same weights as a frozen model, or on another mesh.
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/models/adapter.h"
#include "easydel/models/family.h"
#include "easydel/models/model.h"
#include "easydel/nn/adapter_slots.h"
#include "easydel/nn/placement.h"
#include "easydel/nn/scope.h"
#include "easydel/nn/shards.h"

namespace easydel::models {

struct ModelCopy {
  using Fill = std::function<void(nn::Entry& entry, const nn::Entry& source)>;

  // The family's model on `team`, whose parameters `fill` gives from those of `from`.
  static std::shared_ptr<Model> build(const Model& from, const std::shared_ptr<const collective::Team>& team,
                                      const std::function<void(nn::Entry& entry)>& place, const Fill& fill,
                                      std::shared_ptr<nn::AdapterSlots> slots = nullptr) {
    auto table = std::make_unique<nn::ParameterTable>();
    nn::Building building{*table, from.compute_, team, {}, {}, {}, from.moe_method_, {}};
    if (place) building.place = place;
    if (slots) building.weight_policies.push_back(slots);
    building.fill = [&](nn::Entry& entry, const nn::Initial&, const std::vector<nn::TensorSource>&) {
      const nn::Entry* source = from.parameters_->find(entry.path);
      check(source != nullptr, "copy: no parameter ", entry.path);
      entry.source = source->source;
      entry.trainable = false;
      fill(entry, *source);
    };
    const ConfigReader reader(from.config_, FilePlace{(from.folder_ / "config.json").string()});
    std::shared_ptr<Model> model = build_model(family_of(reader), reader, building);
    model->parameters_ = std::move(table);
    model->config_ = from.config_;
    model->folder_ = from.folder_;
    model->compute_ = from.compute_;
    model->file_type_ = from.file_type_;
    model->device_ = from.device_;
    model->attention_ = from.attention_;
    model->cache_format_ = from.cache_format_;
    model->moe_method_ = from.moe_method_;
    model->adapter_slots_ = std::move(slots);
    model->team_ = team;
    return model;
  }

  static std::shared_ptr<Model> copy(const Model& from) {
    return build(from, from.team_, nullptr, [&](nn::Entry& entry, const nn::Entry& source) {
      Tensor values = source.shard, original;
      bool changes = source.trainable;
      for (const auto& adapter : from.adapters_)
        if (original = adapter->original(source); original.defined()) {
          values = original, changes = false;
          break;  // later ones changed what this one left
        }
      if (!values.defined())
        refuse(from.folder_.string(), "copying a quantized model is not built yet", "load it once more");
      entry.team = source.team;
      entry.slice = source.slice;
      entry.layout = source.layout;
      if (!from.adapters_.empty() && !changes) return void(entry.shard = values.detach());
      // A frozen model does not need masters in another dtype than the computation's.
      entry.shard = values.detach().to(entry.compute, /*non_blocking=*/false, /*copy=*/true);
    });
  }

  static std::shared_ptr<Model> lay_out_anew(const Model& from, const std::shared_ptr<const collective::Team>& team,
                                             const std::vector<mesh::Rule>& partition_rules) {
    refuse_unmergeable(from, from.folder_.string());
    for (const auto& adapter : from.adapters_)
      for (const Adapter::Layer& layer : adapter->layers())
        if (layer.shared)
          refuse(from.folder_.string(),
                 str("merging into ", layer.module, ", which reads the embedding, is not built yet on another mesh"),
                 "leave it out of lora.target_modules");
    const mesh::PartitionRules rules(partition_rules, team->mesh());
    const mesh::Mesh &before = from.team_->mesh(), &after = team->mesh();
    const bool same_mesh = before.names() == after.names() && before.sizes() == after.sizes();
    int64_t dropped = 0;
    return build(
        from, team, [&](nn::Entry& entry) { nn::place(entry, team, rules, dropped); },
        [&](nn::Entry& entry, const nn::Entry& source) {
          if (!source.shard.defined())
            refuse(from.folder_.string(), "laying out a quantized model on another mesh is not built yet");
          const auto whole_of = [](const nn::Entry& each) { return nn::whole_of(each, each.shard); };
          const auto changes = [&](const auto& adapter) { return adapter->changes(source, false); };
          if (std::ranges::any_of(from.adapters_, changes)) {
            Tensor whole = whole_of(source);
            for (const auto& adapter : from.adapters_) whole = adapter->merged(source, whole, false, whole_of);
            entry.shard = team->cut(whole, entry.layout).to(entry.compute).clone(at::MemoryFormat::Contiguous);
            return;
          }
          entry.shard = source.shard.detach().to(entry.compute);
          if (entry.layout == source.layout && (same_mesh || mesh::axes_of(entry.layout).empty())) return;
          const Tensor whole = nn::whole_of(source, entry.shard);
          entry.shard = team->cut(whole, entry.layout).clone(at::MemoryFormat::Contiguous);
        },
        std::make_shared<nn::AdapterSlots>());
  }
};

std::shared_ptr<Model> copy_model(const Model& model) { return ModelCopy::copy(model); }

std::shared_ptr<Model> lay_out_anew(const Model& model, std::shared_ptr<const collective::Team> team,
                                    const std::vector<mesh::Rule>& partition_rules) {
  return ModelCopy::lay_out_anew(model, team, partition_rules);
}

}  // namespace easydel::models
