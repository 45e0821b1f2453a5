// A model once more from the weights in memory: the same weights as a frozen model, or on another mesh.
#include <ATen/ops/empty.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/models/adapter.h"
#include "easydel/models/family.h"
#include "easydel/models/model.h"
#include "easydel/models/spread_model.h"
#include "easydel/nn/adapter_slots.h"
#include "easydel/nn/placement.h"
#include "easydel/nn/scope.h"
#include "easydel/nn/shards.h"

namespace easydel::models {

struct ModelCopy {
  using Fill = std::function<void(nn::Entry& entry, const nn::Entry& source)>;

  // The family's model of this configuration on `team`, whose parameters `fill` gives from those of `from`.
  static std::shared_ptr<Model> build(const Model& from, const Value& config,
                                      const std::shared_ptr<const collective::Team>& team,
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
    const ConfigReader reader(config, FilePlace{(from.folder_ / "config.json").string()});
    std::shared_ptr<Model> model = build_model(family_of(reader), reader, building);
    model->parameters_ = std::move(table);
    model->config_ = config;
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
    return build(from, from.config_, from.team_, nullptr, [&](nn::Entry& entry, const nn::Entry& source) {
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

  static void refuse_unmerged(const Model& from) {
    refuse_unmergeable(from, from.folder_.string());
    for (const auto& adapter : from.adapters_)
      for (const Adapter::Layer& layer : adapter->layers())
        if (layer.shared)
          refuse(from.folder_.string(),
                 str("merging into ", layer.module, ", which reads the embedding, is not built yet on another mesh"),
                 "leave it out of lora.target_modules");
  }

  static bool is_adapted(const Model& from, const nn::Entry& source) {
    return std::ranges::any_of(from.adapters_, [&](const auto& adapter) { return adapter->changes(source, false); });
  }
  // The whole tensor with the adapters merged.
  static Tensor merged(const Model& from, const nn::Entry& source) {
    const auto whole_of = [](const nn::Entry& each) { return nn::whole_of(each, each.shard); };
    Tensor whole = whole_of(source);
    for (const auto& adapter : from.adapters_) whole = adapter->merged(source, whole, false, whole_of);
    return whole;
  }

  static std::shared_ptr<Model> spread_from_first(const Model& present, const Value& config, const Model* whole) {
    const at::NoGradGuard no_gradient;
    const collective::Group all = present.team_->all();
    const auto receive = [&](nn::Entry& entry, const nn::Entry& source) {
      entry.team = source.team;
      entry.slice = source.slice;
      entry.layout = source.layout;
      const Tensor values = whole ? merged(*whole, *whole->parameters_->find(entry.path)).to(entry.compute).contiguous()
                                  : at::empty(entry.shape, at::TensorOptions(entry.compute));
      all.broadcast(values, 0);
      // The first rank's are the caller's, who may change them.
      const bool own = !whole && mesh::axes_of(entry.layout).empty();
      entry.shard = own ? values : present.team_->cut(values, entry.layout).clone(at::MemoryFormat::Contiguous);
    };
    auto out = build(present, config, present.team_, nullptr, receive, std::make_shared<nn::AdapterSlots>());
    if (whole) out->folder_ = whole->folder_;
    return out;
  }

  static void check_spreads(const Model& present, const Model& whole) {
    const auto refuse_shapes = [](const std::string& what) {
      refuse("model", "the new weights have " + what, "make an engine for it");
    };
    refuse_unmerged(whole);
    for (const nn::Entry& given : whole.parameters_->entries())
      if (!given.adapter && !present.parameters_->find(given.path)) refuse_shapes("a parameter more, " + given.path);
    for (const nn::Entry& own : present.parameters_->entries()) {
      if (own.adapter) continue;
      const nn::Entry* const given = whole.parameters_->find(own.path);
      if (!given) refuse_shapes("no " + own.path);
      if (given->shape != own.shape) refuse_shapes("another shape of " + own.path);
      if (!own.shard.defined() || !given->shard.defined())
        refuse("model", "new weights in codes from memory are not built yet on several ranks", "give a folder");
      if (!given->team->mesh().parallel(mesh::axes_of(given->layout)).empty())
        refuse("model", "the first rank has only a part of the new weights",
               "give a model that is whole on the first rank, or a folder");
    }
  }

  static std::shared_ptr<Model> lay_out_anew(const Model& from, const std::shared_ptr<const collective::Team>& team,
                                             const std::vector<mesh::Rule>& partition_rules) {
    refuse_unmerged(from);
    const mesh::PartitionRules rules(partition_rules, team->mesh());
    const mesh::Mesh &before = from.team_->mesh(), &after = team->mesh();
    const bool same_mesh = before.names() == after.names() && before.sizes() == after.sizes();
    int64_t dropped = 0;
    return build(
        from, from.config_, team, [&](nn::Entry& entry) { nn::place(entry, team, rules, dropped); },
        [&](nn::Entry& entry, const nn::Entry& source) {
          if (!source.shard.defined())
            refuse(from.folder_.string(), "laying out a quantized model on another mesh is not built yet");
          if (is_adapted(from, source)) {
            const Tensor whole = merged(from, source);
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

std::shared_ptr<Model> spread_from_first(const Model& present, const Value& config, const Model* whole) {
  return ModelCopy::spread_from_first(present, config, whole);
}

void check_spreads(const Model& present, const Model& whole) { ModelCopy::check_spreads(present, whole); }

}  // namespace easydel::models
