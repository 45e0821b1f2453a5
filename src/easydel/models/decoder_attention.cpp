// The attention of a decoder as its spec describes it: projections, norms, rotary positions, attention, output.
#include <ATen/ops/clamp.h>

#include "easydel/base/error.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/ops/norm.h"

namespace easydel::models {

using nn::Initial;
using nn::Pass;
using nn::Scope;
using nn::Split;

namespace {

// Heads are divided over the tensor axis if it divides both kinds. Parameters with a value per head, norms of the whole
// projection and fused weights stay whole, and so does attention with dropout, whose mask counts the heads of all
// ranks.
nn::Region region_of(const Scope& scope, const DecoderSpec& spec, const DecoderLayerSpec& own,
                     const LayerSizes& sizes) {
  const bool whole = spec.qkv != QkvLayout::separate || spec.attention_dropout > 0 ||
                     spec.qk_norm == QkNorm::each_head || spec.qk_norm == QkNorm::whole || own.sinks ||
                     own.attention.slopes.defined();
  if (whole) return {};
  return nn::Region(scope.team(), {sizes.heads, sizes.kv_heads});
}

// A norm with one weight for all heads, or over the whole projection.
class SharedHeadNorm final : public HeadNorm {
 public:
  SharedHeadNorm(const Scope& scope, int64_t size, bool whole, const nn::Norm::Options& options)
      : whole_(whole), norm_(scope, size, options) {}
  Tensor operator()(const Tensor& x) const override { return whole_ ? norm_(x.flatten(1)).view(x.sizes()) : norm_(x); }

 private:
  bool whole_;
  nn::Norm norm_;
};

class EachHeadNorm final : public HeadNorm {
 public:
  EachHeadNorm(const Scope& scope, int64_t heads, int64_t size, const nn::Norm::Options& options)
      : options_(options),
        weight_(scope.parameter(
            "weight", {heads, size}, nn::Role::norm,
            {Split::none, Initial::ones(), options.kind == nn::NormKind::layer ? "scale" : "kernel"})) {}
  Tensor operator()(const Tensor& x) const override { return norm_of_each_head(x, weight_.value(), options_); }

 private:
  nn::Norm::Options options_;
  nn::Parameter weight_;
};

// in_region: heads are divided over ranks. Returns null if the layer has no such norm.
std::unique_ptr<HeadNorm> build_head_norm(const Scope& scope, const DecoderSpec& spec, int64_t heads, int64_t layer,
                                          bool in_region) {
  if (spec.qk_norm_builder) return spec.qk_norm_builder(scope, spec, heads, layer);
  const int64_t size = sizes_of(spec, layer).head_dim;
  nn::Norm::Options options = spec.norm;
  options.in_region = in_region;
  if (spec.qk_norm == QkNorm::each_head) return std::make_unique<EachHeadNorm>(scope, heads, size, options);
  const bool whole = spec.qk_norm == QkNorm::whole;
  return std::make_unique<SharedHeadNorm>(scope, whole ? heads * size : size, whole, options);
}

}  // namespace

Tensor norm_of_each_head(const Tensor& x, const Tensor& weight, const nn::Norm::Options& options) {
  const Tensor wide = x.to(at::kFloat);
  const Tensor unit = options.kind == nn::NormKind::layer ? ops::layer_norm(wide, {}, {}, options.epsilon)
                                                          : ops::rms_norm(wide, {}, options.epsilon);
  return (unit * weight.to(at::kFloat)).to(x.scalar_type());
}

DecoderAttention::DecoderAttention(const Scope& scope, const DecoderSpec& spec, int64_t layer, bool divided)
    : sizes_(sizes_of(spec, layer)),
      region_(divided ? region_of(scope, spec, spec.layers[size_t(layer)], sizes_) : nn::Region()),
      heads_(sizes_.heads / region_.parts()),
      kv_heads_(sizes_.kv_heads / region_.parts()),
      layer_(layer),
      layout_(spec.qkv),
      gated_(spec.attention_gate),
      norm_after_rope_(spec.qk_norm_after_rope),
      clip_(spec.clip_qkv),
      query_scaling_(spec.layers[size_t(layer)].query_scaling),
      residual_dropout_(spec.residual_dropout),
      output_(scope / spec.names.output, sizes_.heads * sizes_.v_dim, spec.hidden,
              {spec.output_bias, Split::input, spec.output_deviation, region_}) {
  const DecoderLayerSpec& own = spec.layers[size_t(layer)];
  const nn::LinearOptions options{spec.qkv_bias, Split::output, spec.deviation, region_};
  const int64_t q = sizes_.heads * sizes_.head_dim, k = sizes_.kv_heads * sizes_.head_dim;
  const int64_t v = sizes_.kv_heads * sizes_.v_dim;
  if (layout_ != QkvLayout::separate) {
    qkv_.emplace(scope / spec.names.qkv, spec.hidden, q + k + v, options);
  } else {
    q_.emplace(scope / spec.names.q, spec.hidden, spec.attention_gate ? 2 * q : q, options);
    k_.emplace(scope / spec.names.k, spec.hidden, k, options);
    v_.emplace(scope / spec.names.v, spec.hidden, v, options);
  }
  if (spec.qk_norm != QkNorm::none) {
    q_norm_ = build_head_norm(scope / spec.names.q_norm, spec, sizes_.heads, layer, region_.divided());
    k_norm_ = build_head_norm(scope / spec.names.k_norm, spec, sizes_.kv_heads, layer, region_.divided());
  }
  if (own.rotary) rope_ = own.rope ? own.rope.get() : spec.rope ? &*spec.rope : nullptr;
  if (own.sinks)
    sinks_ = scope.parameter("sinks", {sizes_.heads}, nn::Role::other, {Split::none, Initial::normal(spec.deviation)});
  attention_ = own.attention;
  if (attention_.slopes.defined())
    check(attention_.slopes.size(0) == sizes_.heads, "decoder: ", attention_.slopes.size(0), " slopes, ", sizes_.heads,
          " heads");
  if (!spec.causal) attention_.kind = ops::AttentionKind::full;
  attention_.v_dim = sizes_.v_dim;
  attention_.dropout = spec.attention_dropout;
}

double DecoderAttention::mixing_flops(int64_t length) const {
  const double sides = attention_.kind == ops::AttentionKind::full ? 2.0 : 1.0;
  double seen = sides * double(length) / 2;
  if (attention_.window > 0) seen = std::min(seen, sides * double(attention_.window));
  if (attention_.chunk > 0) seen = std::min(seen, double(attention_.chunk) / 2);
  return 2.0 * double(sizes_.heads * (sizes_.head_dim + sizes_.v_dim)) * seen;
}

nn::LayerOutput DecoderAttention::forward(const Tensor& outside, Pass& pass, bool requested) const {
  const auto rows = [&](const Tensor& t) { return requested ? pass.stream().requested_rows(t) : t; };
  const Tensor x = region_.enter(outside);
  auto [q, k, v, gate] = project(x, pass, requested);
  if (q_norm_ && !norm_after_rope_) q = (*q_norm_)(q), k = (*k_norm_)(k);
  if (clip_ > 0) q = at::clamp(q, -clip_, clip_), k = at::clamp(k, -clip_, clip_), v = at::clamp(v, -clip_, clip_);
  v = adjust_values(v);
  const ops::RopeTable* key_rope = nullptr;  // rotates keys where they are written
  if (rope_) {
    const ops::RopeTable& table = pass.stream().rope_table(*rope_);
    q = ops::rope(q, requested ? ops::RopeTable{rows(table.cos), rows(table.sin), table.interleaved} : table);
    if (q_norm_ && norm_after_rope_)
      k = ops::rope(k, table);
    else
      key_rope = &table;
  }
  if (q_norm_ && norm_after_rope_) q = (*q_norm_)(q), k = (*k_norm_)(k);
  if (query_scaling_.factor != 0.0) q = q * query_scale(rows(pass.stream().positions), q.scalar_type());
  ops::AttentionSpec attention = attention_;
  if (sinks_) attention.sinks = sinks_.value();
  if (attention.slopes.defined()) attention.slopes = attention.slopes.to(q.device());
  Tensor mixed = pass.attend(layer_, attention, q, k, v, key_rope).reshape({q.size(0), heads_ * sizes_.v_dim});
  if (gate.defined()) mixed = mixed * ops::activate(gate, ops::Activation::sigmoid);
  const Tensor out = output_(before_output(mixed), pass, "attn_output");
  return {pass.random().dropout("attention_dropout", out, residual_dropout_), {}};
}

DecoderAttention::Projected DecoderAttention::project(const Tensor& x, Pass& pass, bool requested) const {
  const auto rows = [&](const Tensor& t) { return requested ? pass.stream().requested_rows(t) : t; };
  const int64_t tokens = x.size(0), head_dim = sizes_.head_dim, v_dim = sizes_.v_dim;
  if (layout_ == QkvLayout::separate) {
    const Tensor asking = rows(x);
    const int64_t width = gated_ ? 2 * head_dim : head_dim;
    // In the order in which activations are named: queries, keys, values.
    const nn::Linear::Named layers[] = {{&*q_, "attn_query"}, {&*k_, "attn_key"}, {&*v_, "attn_value"}};
    const std::span<const nn::Linear::Named> all = layers;
    std::vector<Tensor> made = nn::Linear::of_one_input(asking, pass, asking.is_same(x) ? all : all.first(1));
    if (!asking.is_same(x))
      for (Tensor& of_all : nn::Linear::of_one_input(x, pass, all.subspan(1))) made.push_back(std::move(of_all));
    Tensor q = made[0].view({asking.size(0), heads_, width}), gate;
    if (gated_) {
      gate = q.narrow(2, head_dim, head_dim).flatten(1);
      q = q.narrow(2, 0, head_dim);
    }
    return {q, made[1].view({tokens, -1, head_dim}), made[2].view({tokens, -1, v_dim}), gate};
  }
  const Tensor all = (*qkv_)(x, pass, "attn_qkv");
  // With one split the backward concatenates the parts' gradients once; the gradient of a slice would be a tensor of
  // the whole size.
  if (layout_ == QkvLayout::sequential) {
    const auto parts = all.split_with_sizes({heads_ * head_dim, kv_heads_ * head_dim, kv_heads_ * v_dim}, 1);
    return {rows(parts[0]).unflatten(1, {heads_, head_dim}),
            parts[1].unflatten(1, {kv_heads_, head_dim}),
            parts[2].unflatten(1, {kv_heads_, v_dim}),
            {}};
  }
  const int64_t q = heads_ / kv_heads_ * head_dim;
  const auto parts = all.view({tokens, kv_heads_, q + head_dim + v_dim}).split_with_sizes({q, head_dim, v_dim}, 2);
  return {rows(parts[0].reshape({tokens, heads_, head_dim})), parts[1], parts[2], {}};
}

Tensor DecoderAttention::query_scale(const Tensor& positions, at::ScalarType type) const {
  const Tensor step = (positions + query_scaling_.shift).floor_divide(query_scaling_.length);
  return ((step.to(at::kFloat) + 1).log() * query_scaling_.factor + 1).to(type).view({-1, 1, 1});
}

LayerSizes sizes_of(const DecoderSpec& spec, int64_t layer) {
  const LayerSizes& own = spec.layers[size_t(layer)].sizes;
  const auto or_else = [](int64_t value, int64_t otherwise) { return value > 0 ? value : otherwise; };
  LayerSizes sizes{or_else(own.heads, spec.heads), or_else(own.kv_heads, spec.kv_heads),
                   or_else(own.head_dim, spec.head_dim), 0, or_else(own.intermediate, spec.intermediate)};
  sizes.v_dim = or_else(own.v_dim, sizes.head_dim);
  return sizes;
}

std::unique_ptr<nn::Layer> build_attention(const Scope& scope, const DecoderSpec& spec, int64_t layer) {
  if (spec.attention_builder) return spec.attention_builder(scope, spec, layer);
  return std::make_unique<DecoderAttention>(scope, spec, layer);
}

}  // namespace easydel::models
