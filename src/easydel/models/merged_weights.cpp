#include "easydel/models/merged_weights.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/models/adapter.h"
#include "easydel/nn/weight.h"
#include "easydel/tensor/squares.h"

namespace easydel::models {
namespace {

// Rows that are computed together: they stay in a cache, and no further fp32 copy of a weight is whole.
template <class F>
void for_each_panel(const Tensor& of, const F& run) {
  constexpr int64_t rows_per_panel = 256;
  for (int64_t begin = 0; begin < of.size(0); begin += rows_per_panel) {
    const int64_t rows = std::min(rows_per_panel, of.size(0) - begin);
    run([&](const Tensor& whole) { return whole.narrow(0, begin, rows); });
  }
}

std::string percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g %%", whole > 0 ? 100 * std::sqrt(part / whole) : 0.0);
  return text;
}

}  // namespace

void MergeFigures::add(const std::string& layer, const Tensor& base, const Tensor& exact, const Tensor& saved) {
  Squares own;
  for_each_panel(exact, [&](const auto& panel) {
    const Tensor merged = panel(exact);
    own.weights += tensor::sum_of_squares(merged);
    own.change += tensor::sum_of_squared_differences(merged, panel(base));
    if (!saved.is_same(exact)) own.rounding += tensor::sum_of_squared_differences(merged, panel(saved));
  });
  all_.weights += own.weights;
  all_.change += own.change;
  all_.rounding += own.rounding;
  ++weights_;
  const double share = own.weights > 0 ? own.rounding / own.weights : 0;
  if (share > most_) most_ = share, most_layer_ = layer;
}

void MergeFigures::add_original(const Tensor& original, const Tensor& base) {
  for_each_panel(base, [&](const auto& panel) {
    original_ += tensor::sum_of_squared_differences(panel(original), panel(base));
    trained_ += tensor::sum_of_squares(panel(base));
  });
}

std::string MergeFigures::told(const std::string& form) const {
  if (weights_ == 0) return {};
  std::string out =
      str("merged into ", counted(weights_, "weight"), ", which change by ", percent(all_.change, all_.weights));
  if (all_.rounding > 0)
    out += str("; rounding them to ", form, " changes them by ", percent(all_.rounding, all_.weights), ", most in ",
               most_layer_, " (", percent(most_, 1), ")");
  if (trained_ > 0)
    out += str("; the original weights differ from those that the adapter was trained over by ",
               percent(original_, trained_));
  return out + " (root mean square)";
}

MergedWeights::MergedWeights(const Model& model, WholeWeights weights, const MergeOptions& options)
    : model_(&model), weights_(std::move(weights)), options_(options) {}

bool MergedWeights::changes(const nn::Entry& entry) const {
  return std::ranges::any_of(model_->adapters(),
                             [&](const auto& adapter) { return adapter->changes(entry, /*shared=*/false); });
}

Tensor MergedWeights::base_of(const nn::Entry& entry) const {
  const auto found = weights_.values.find(&entry);
  return found != weights_.values.end() ? found->second : nn::values_of(weights_.codes.at(&entry), entry, at::kFloat);
}

Tensor MergedWeights::of(const nn::Entry& entry, bool shared) const {
  if (!shared && state_->last == &entry) return state_->merged;
  const Tensor base = base_of(entry);
  Tensor value = base;
  if (options_.original && !weights_.values.contains(&entry)) {
    const nn::Entry* const plain = options_.original->parameters().find(entry.path);
    check(plain && plain->shard.defined() && plain->shape == entry.shape, "merge: no original of ", entry.path);
    value = plain->shard.detach();
    if (!shared) state_->figures.add_original(value, base);
  }
  for (const auto& adapter : model_->adapters())
    value = adapter->merged(entry, value, shared, [this](const nn::Entry& own) { return weights_.values.at(&own); });
  if (!shared) state_->last = &entry, state_->merged = value, state_->base = base;
  return value;
}

Tensor MergedWeights::part(const FilePart& part, bool merged) const {
  Tensor whole = of(*part.entry);
  if (!merged) whole = state_->base;
  return part.index < 0 ? whole : whole.select(0, part.index);
}

Tensor MergedWeights::assembled(const FileTensor& file, at::ScalarType type, bool merged) const {
  const at::NoGradGuard no_gradient;
  if (file.is_parameter()) return part(file.parts.front(), merged).to(type);
  const Tensor all = at::empty(file.shape, at::TensorOptions().dtype(type));
  for (const FilePart& one : file.parts) one.entry->source.part_of(all).copy_(part(one, merged));
  return all;
}

Tensor MergedWeights::of(const FileTensor& file, at::ScalarType type) const {
  if (std::ranges::none_of(file.parts, [&](const FilePart& part) { return changes(*part.entry); }))
    return assembled(file, type, /*merged=*/true);
  const Tensor values = exact(file), saved = values.to(type);
  note(file, values, saved);
  return saved;
}

Tensor MergedWeights::exact(const FileTensor& file) const { return assembled(file, at::kFloat, /*merged=*/true); }

void MergedWeights::note(const FileTensor& file, const Tensor& exact, const Tensor& saved) const {
  const at::NoGradGuard no_gradient;
  const Tensor base =
      file.is_parameter() ? part(file.parts.front(), /*merged=*/false) : assembled(file, at::kFloat, /*merged=*/false);
  state_->figures.add(nn::layer_name(*file.parts.front().entry), base, exact, saved);
}

}  // namespace easydel::models
