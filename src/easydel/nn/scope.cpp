#include "easydel/nn/scope.h"

#include <algorithm>

#include "easydel/nn/weight_policy.h"

namespace easydel::nn {

Scope Scope::operator/(std::string_view name) const {
  Scope below = *this;
  if (name.empty()) return below;
  if (!below.path_.empty()) below.path_ += '.';
  below.path_ += name;
  return below;
}

Scope Scope::unit(int index) const {
  Scope below = *this;
  below.unit_ = index;
  return below;
}

Scope Scope::head() const {
  Scope below = *this;
  below.head_ = true;
  return below;
}

Scope Scope::on_stream(std::string_view name) const {
  Scope below = *this;
  below.stream_ = name;
  return below;
}

Scope Scope::with_transposed_weights() const {
  Scope below = *this;
  below.transposed_weights_ = true;
  return below;
}

std::vector<Parameter> Scope::since(size_t mark) const {
  std::vector<Parameter> out;
  for (size_t i = mark; i < building_->table.entries().size(); ++i) out.emplace_back(&building_->table.entries()[i]);
  return out;
}

Parameter Scope::parameter(std::string_view name, std::vector<int64_t> shape, Role role,
                           const ParameterOptions& options) const {
  Entry entry;
  entry.path = (*this / name).path();
  std::string leaf(name);
  if (role == Role::weight && (leaf == "weight" || leaf.ends_with(".weight")))
    leaf.replace(leaf.size() - 6, 6, "kernel");
  entry.easydel_path = (*this / (options.easydel_name.empty() ? std::string_view(leaf) : options.easydel_name)).path();
  std::replace(entry.easydel_path.begin(), entry.easydel_path.end(), '.', '/');
  entry.shape = std::move(shape);
  entry.role = role;
  entry.split = options.split;
  entry.use = options.use;
  entry.use_dimension = options.use_dimension;
  entry.unit = unit_;
  entry.head = head_;
  entry.trainable = options.trainable;
  entry.router = options.router;
  entry.adapter = options.adapter;
  entry.rate = options.rate;
  std::vector<TensorSource> sources = options.sources;
  if (sources.empty()) {
    sources.emplace_back();
    sources.front().tensors = {entry.path};
    sources.front().transposed = options.transposed;
  }
  entry.source = sources.front();
  for (const TensorSource& source : sources)
    if (source.packing != Packing::none) entry.packing = source.packing;
  entry.layout.resize(entry.shape.size());
  entry.slice = {std::vector<int64_t>(entry.shape.size(), 0), entry.shape};
  entry.compute = options.exact ? at::kFloat : building_->compute;
  if (building_->place) building_->place(entry);
  Entry& added = building_->table.add(std::move(entry));
  Initial initial = options.initial;
  initial.cutoff = building_->normal_cutoff;
  building_->fill(added, initial, sources);
  if (role == Role::weight || role == Role::embedding) set_readers(added);
  return Parameter(&added);
}

void Scope::set_readers(Entry& entry) const {
  entry.forms = std::make_shared<WeightForms>(Parameter(&entry));
  const bool stack = entry.shape.size() == 3;
  if (stack)
    entry.stack = dense_stack(entry.forms, moe_method() == ops::MoeMethod::fused_moe);
  else
    entry.weight = dense_weight(entry.forms);
  if (entry.adapter) return;  // it belongs to a policy
  for (const auto& policy : building_->weight_policies) {
    if (entry.router) {
      Scope layer = *this;  // its parameter may be named from the layer around it
      layer.path_ = layer_name(entry);
      entry.weight = policy->router(layer, entry, entry.weight);
    }
    if (stack) entry.stack = policy->experts(*this, entry, entry.stack);
    if (is_linear(entry)) entry.weight = policy->linear(*this, entry, entry.weight, /*shared=*/false);
    if (entry.role == Role::embedding) entry.weight = policy->embedding(*this, entry, entry.weight);
  }
}

std::shared_ptr<Weight> Scope::reader_of(Parameter shared) const {
  Entry& entry = shared.entry();
  std::shared_ptr<Weight> reader = dense_weight(entry.forms);
  for (const auto& policy : building_->weight_policies) reader = policy->linear(*this, entry, reader, /*shared=*/true);
  entry.tied_layer = path_;
  entry.tied_weight = reader;
  return reader;
}

}  // namespace easydel::nn
