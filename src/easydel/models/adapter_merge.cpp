// Adapters as a part of the base's values.
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/models/adapter.h"

namespace easydel::models {

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
  if (!layer) return whole;
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

void Adapter::merge() {
  if (state_->merged) return;
  for (const Layer& layer : layers_) {
    if (!layer.base->shard.defined())
      refuse(options_.where, str("merging into codes is not built yet (", layer.module, ")"),
             "load the model without quantization to merge");
    if (layer.parts.bias)
      refuse(options_.where, str("merging lora_bias while the model runs is not built yet (", layer.module, ")"),
             "`easydel merge` saves a merged model");
  }
  const at::NoGradGuard no_gradient;
  const auto whole = [](const nn::Entry& entry) { return entry.team->whole(entry.shard.detach(), entry.layout); };
  for (const Layer& layer : layers_) {
    if (layer.shared) continue;  // its weight is the embedding's
    nn::Entry& base = *layer.base;
    const Tensor sum = merged(base, whole(base), false, whole).to(base.shard.scalar_type());
    unmerged_[&base] = base.shard;
    base.shard = base.team->cut(sum, base.layout).clone(at::MemoryFormat::Contiguous);
    base.written();
  }
  state_->merged = true;
}

void Adapter::unmerge() {
  for (const Layer& layer : layers_)
    if (const auto found = unmerged_.find(layer.base); found != unmerged_.end()) {
      layer.base->shard = found->second;
      layer.base->written();
    }
  unmerged_.clear();
  state_->merged = false;
}

}  // namespace easydel::models
