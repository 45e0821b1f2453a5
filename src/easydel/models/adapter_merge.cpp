// Adapters as a part of the base's values.
#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/models/adapter.h"
#include "easydel/nn/made_codes.h"
#include "easydel/quant/quantize.h"

namespace easydel::models {
namespace {

// What products read of one merged weight, fp32 [out, in], instead of `before`. `format`: that of its codes; null: it
// is values from now on.
ops::Matrix merged_matrix(const Tensor& sum, at::ScalarType compute, const quant::Format* format) {
  if (format) return quant::coded(sum, *format, compute);
  const Tensor values = sum.to(compute).contiguous();
  return {values, values, ops::pack(values)};
}

}  // namespace

const Adapter::Layer* Adapter::find(const nn::Entry& base, bool shared) const {
  const auto found =
      std::ranges::find_if(layers_, [&](const Layer& layer) { return layer.base == &base && layer.shared == shared; });
  return found == layers_.end() ? nullptr : &*found;
}

Tensor Adapter::merged(const nn::Entry& base, const Tensor& whole, bool shared, const ValueOf& value) const {
  const at::NoGradGuard no_gradient;
  // The bias of B becomes part of the layer's.
  if (base.role == nn::Role::bias && options_.config.lora_bias)
    for (const Layer& layer : layers_)
      if (layer.parts.bias && base.path == layer.module + ".bias")
        return whole.to(at::kFloat) + value(layer.parts.bias.entry()) * layer.parts.scale;
  const Layer* const layer = find(base, shared);
  if (!layer || (layer->shared ? shared_state_ : state_)->merged) return whole;
  if (layer->own) return value(layer->own.entry());
  if (!layer->rows.empty()) {
    Tensor out = whole.to(at::kFloat).clone();
    const Tensor rows = value(layer->row_values.entry());
    for (size_t i = 0; i < layer->rows.size(); ++i) out.select(0, layer->rows[i]).copy_(rows[int64_t(i)]);
    return out;
  }
  if (layer->stack.experts > 0)
    return nn::merged_stack(whole, layer->stack, value(layer->stack.a.entry()), value(layer->stack.b.entry()));
  const Tensor a = value(layer->parts.a.entry()), b = value(layer->parts.b.entry());
  if (layer->embedding) {
    const Tensor sum = nn::merged_values(whole, b.t(), a, {}, layer->parts.scale);
    if (!layer->parts.magnitude) return sum;
    const Tensor lengths = nn::row_lengths(whole.t(), a.t(), b, layer->parts.scale);
    return sum * (value(layer->parts.magnitude.entry()).to(at::kFloat) / lengths);
  }
  const Tensor magnitude = layer->parts.magnitude ? value(layer->parts.magnitude.entry()) : Tensor();
  return nn::merged_values(whole, a, b, magnitude, layer->parts.scale);
}

void Adapter::merge(MergeInto into) {
  if (state_->merged) return;
  for (const Layer& layer : layers_) {
    if (into == MergeInto::codes && !layer.base->shard.defined() &&
        (!layer.base->weight || !nn::made_codes(*layer.base->weight).format))
      refuse(options_.where, str("merging into the codes of a file is not built yet (", layer.module, ")"),
             "merge into values, or make the codes by quantization.model");
    if (layer.parts.bias)
      refuse(options_.where, str("merging lora_bias while the model runs is not built yet (", layer.module, ")"),
             "`easydel merge` saves a merged model");
  }
  const at::NoGradGuard no_gradient;
  const auto whole = [](const nn::Entry& entry) { return entry.team->whole(entry.shard.detach(), entry.layout); };
  for (const Layer& layer : layers_) {
    if (layer.shared) continue;  // its weight is the embedding's
    nn::Entry& base = *layer.base;
    if (!base.shard.defined()) {
      merge_codes(base, into, whole);
      continue;
    }
    const Tensor sum = merged(base, whole(base), false, whole).to(base.shard.scalar_type());
    unmerged_[&base] = base.shard;
    base.shard = base.team->cut(sum, base.layout).clone(at::MemoryFormat::Contiguous);
    base.written();
  }
  state_->merged = true;
}

void Adapter::merge_codes(nn::Entry& base, MergeInto into, const ValueOf& value) {
  const Tensor values = nn::values_of(nn::whole_codes(base), base, at::kFloat),
               sum = merged(base, values, /*shared=*/false, value);
  const quant::Format* const format = into == MergeInto::codes ? nn::made_codes(*base.weight).format : nullptr;
  std::vector<ops::Matrix> now;
  for (const Tensor& one : sum.view({-1, sum.size(-2), sum.size(-1)}).unbind())
    now.push_back(merged_matrix(one, base.compute, format));
  unmerged_codes_[&base] = nn::read_instead_of_codes(base, std::move(now));
}

void Adapter::unmerge() {
  for (auto& [entry, before] : unmerged_codes_) nn::read_instead_of_codes(*entry, std::move(before));
  unmerged_codes_.clear();
  for (const Layer& layer : layers_)
    if (const auto found = unmerged_.find(layer.base); found != unmerged_.end()) {
      layer.base->shard = found->second;
      layer.base->written();
    }
  unmerged_.clear();
  state_->merged = false;
}

}  // namespace easydel::models
