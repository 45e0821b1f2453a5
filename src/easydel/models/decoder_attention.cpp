// Attention of a decoder as its spec says it: projections, norms, rotary positions, the mixing, the output.
#include <ATen/ops/clamp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "easydel/base/error.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/ops/norm.h"

namespace easydel::models {
namespace {

using nn::Initial;
using nn::Pass;
using nn::Scope;
using nn::Split;

// Heads are divided over the tensor axis where both kinds divide. What has a value for each head, norms the whole
// projection or lies in one weight stays whole, and so does attention with dropout, which counts the heads of all
// ranks.
nn::Region region_of(const Scope& scope, const DecoderSpec& spec, const DecoderLayerSpec& own,
                     const LayerSizes& sizes) {
  const bool whole = spec.qkv != QkvLayout::separate || spec.attention_dropout > 0 ||
                     spec.qk_norm == QkNorm::each_head || spec.qk_norm == QkNorm::whole || own.sinks ||
                     !spec.slopes.empty() || !spec.names.mixed_norm.empty();
  if (whole) return {};
  return nn::Region(scope.team(), {sizes.heads, sizes.kv_heads});
}

// The norm of queries or keys.
class HeadNorm {
 public:
  HeadNorm(const Scope& scope, const DecoderSpec& spec, int64_t heads, int64_t size, bool in_region)
      : kind_(spec.qk_norm), options_(spec.qk_norm_options.value_or(spec.norm)) {
    options_.in_region = in_region;
    if (kind_ == QkNorm::head) norm_.emplace(scope, size, options_);
    if (kind_ == QkNorm::whole) norm_.emplace(scope, heads * size, options_);
    if (kind_ != QkNorm::each_head) return;
    const nn::ParameterOptions ones{Split::none, Initial::ones(),
                                    options_.kind == nn::NormKind::layer ? "scale" : "kernel"};
    if (!spec.qk_norm_split) {
      weights_.push_back(scope.parameter("weight", {heads, size}, nn::Role::norm, ones));
      return;
    }
    for (int64_t head = 0; head < heads; ++head)
      weights_.push_back((scope / "norms" / head).parameter("weight", {size}, nn::Role::norm, ones));
  }

  // x [tokens, heads, size]
  Tensor operator()(const Tensor& x) const {
    if (kind_ == QkNorm::head) return (*norm_)(x);
    if (kind_ == QkNorm::whole) return (*norm_)(x.flatten(1)).view(x.sizes());
    std::vector<Tensor> rows;
    for (const nn::Parameter& weight : weights_) rows.push_back(weight.value().to(at::kFloat));
    const Tensor weight = rows.size() == 1 && rows[0].dim() == 2 ? rows[0] : at::stack(rows);
    const Tensor wide = x.to(at::kFloat);
    const Tensor unit = options_.kind == nn::NormKind::layer ? ops::layer_norm(wide, {}, {}, options_.epsilon)
                                                             : ops::rms_norm(wide, {}, options_.epsilon);
    return (unit * weight).to(x.scalar_type());
  }

 private:
  QkNorm kind_;
  nn::Norm::Options options_;
  std::optional<nn::Norm> norm_;
  std::vector<nn::Parameter> weights_;
};

class Attention final : public nn::Layer {
 public:
  Attention(const Scope& scope, const DecoderSpec& spec, int64_t layer)
      : sizes_(sizes_of(spec, layer)),
        region_(region_of(scope, spec, spec.layers[size_t(layer)], sizes_)),
        heads_(sizes_.heads / region_.parts()),
        kv_heads_(sizes_.kv_heads / region_.parts()),
        layer_(layer),
        layout_(spec.qkv),
        gated_(spec.attention_gate),
        norm_after_rope_(spec.qk_norm_after_rope),
        clip_(spec.clip_qkv),
        value_multiplier_(spec.value_multiplier),
        growth_(spec.layers[size_t(layer)].growth),
        residual_dropout_(spec.residual_dropout),
        output_(scope / spec.names.output, sizes_.heads * sizes_.v_dim, spec.hidden,
                linear(spec, spec.output_bias, Split::input, spec.output_deviation)) {
    const DecoderLayerSpec& own = spec.layers[size_t(layer)];
    const nn::LinearOptions options = linear(spec, spec.qkv_bias, Split::output, spec.deviation);
    const int64_t q = sizes_.heads * sizes_.head_dim, k = sizes_.kv_heads * sizes_.head_dim;
    const int64_t v = sizes_.kv_heads * sizes_.v_dim;
    if (layout_ != QkvLayout::separate) {
      qkv_.emplace(scope / spec.names.qkv, spec.hidden, q + k + v, options);
    } else {
      q_.emplace(scope / spec.names.q, spec.hidden, spec.attention_gate ? 2 * q : q, options);
      k_.emplace(scope / spec.names.k, spec.hidden, k, options);
      v_.emplace(scope / spec.names.v, spec.hidden, v, options);
    }
    if (spec.qk_norm != QkNorm::none && own.qk_norm) {
      q_norm_.emplace(scope / spec.names.q_norm, spec, sizes_.heads, sizes_.head_dim, region_.divided());
      k_norm_.emplace(scope / spec.names.k_norm, spec, sizes_.kv_heads, sizes_.head_dim, region_.divided());
    }
    if (!spec.names.mixed_norm.empty())
      mixed_norm_.emplace(scope / spec.names.mixed_norm, sizes_.heads * sizes_.v_dim, spec.norm);
    if (own.turned) rope_ = own.rope ? own.rope.get() : spec.rope ? &*spec.rope : nullptr;
    if (own.sinks)
      sinks_ =
          scope.parameter("sinks", {sizes_.heads}, nn::Role::other, {Split::none, Initial::normal(spec.deviation)});
    if (!spec.slopes.empty()) {
      check(int64_t(spec.slopes.size()) == sizes_.heads, "decoder: ", spec.slopes.size(), " slopes, ", sizes_.heads,
            " heads");
      attention_.slopes = at::tensor(at::ArrayRef<float>(spec.slopes), at::TensorOptions().dtype(at::kFloat));
    }
    attention_.slopes_in_bf16 = spec.slopes_in_bf16;
    attention_.blind = spec.blind;
    if (!spec.causal) attention_.kind = ops::AttentionKind::full;
    attention_.scale = own.scale;
    attention_.window = own.window;
    attention_.chunk = own.chunk;
    attention_.softcap = spec.attention_softcap;
    attention_.v_dim = sizes_.v_dim;
    attention_.dropout = spec.attention_dropout;
  }

  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override { return forward(x, pass, false); }
  nn::LayerOutput forward_wanted(const Tensor& x, Pass& pass) const override { return forward(x, pass, true); }

  nn::CacheLayer cache() const override { return {kv_heads_, sizes_.head_dim, sizes_.v_dim, {}}; }

  double mixing_flops(int64_t length) const override {
    const double sides = attention_.kind == ops::AttentionKind::full ? 2.0 : 1.0;
    double seen = sides * double(length) / 2;
    if (attention_.window > 0) seen = std::min(seen, sides * double(attention_.window));
    if (attention_.chunk > 0) seen = std::min(seen, double(attention_.chunk) / 2);
    return 2.0 * double(sizes_.heads * (sizes_.head_dim + sizes_.v_dim)) * seen;
  }

 private:
  // `wanted`: queries of the wanted tokens alone.
  nn::LayerOutput forward(const Tensor& outside, Pass& pass, bool wanted) const {
    const auto rows = [&](const Tensor& t) { return wanted ? pass.wanted(t) : t; };
    const Tensor x = region_.enter(outside);
    auto [q, k, v, gate] = project(x, rows, pass);
    if (q_norm_ && !norm_after_rope_) q = (*q_norm_)(q), k = (*k_norm_)(k);
    if (clip_ > 0) q = at::clamp(q, -clip_, clip_), k = at::clamp(k, -clip_, clip_), v = at::clamp(v, -clip_, clip_);
    if (value_multiplier_ != 1.0) v = v * value_multiplier_;
    const ops::RopeTable* turn = nullptr;  // of keys that are turned where they are written
    if (rope_) {
      const ops::RopeTable& table = pass.rope_table(*rope_);
      q = ops::rope(q, wanted ? ops::RopeTable{rows(table.cos), rows(table.sin), table.interleaved} : table);
      if (q_norm_ && norm_after_rope_)
        k = ops::rope(k, table);
      else
        turn = &table;
    }
    if (q_norm_ && norm_after_rope_) q = (*q_norm_)(q), k = (*k_norm_)(k);
    if (growth_.factor != 0.0) q = q * growth(rows(pass.stream().positions), q.scalar_type());
    ops::AttentionSpec attention = attention_;
    if (sinks_) attention.sinks = sinks_.value();
    if (attention.slopes.defined()) attention.slopes = attention.slopes.to(q.device());
    Tensor mixed = pass.attend(layer_, attention, q, k, v, "text", turn).reshape({q.size(0), heads_ * sizes_.v_dim});
    if (gate.defined()) mixed = mixed * ops::activate(gate, ops::Activation::sigmoid);
    if (mixed_norm_) mixed = (*mixed_norm_)(mixed);
    const Tensor out = output_(mixed, pass, "attn_output");
    return {pass.dropout("attention_dropout", out, residual_dropout_), {}};
  }

  struct Projected {
    Tensor q, k, v;  // [tokens, heads of this rank, dim]
    Tensor gate;     // [tokens, heads * dim]; undefined: there is none
  };

  // Queries and gates are of the rows that `rows` leaves.
  template <class Rows>
  Projected project(const Tensor& x, const Rows& rows, Pass& pass) const {
    const int64_t tokens = x.size(0), head_dim = sizes_.head_dim, v_dim = sizes_.v_dim;
    if (layout_ == QkvLayout::separate) {
      const Tensor asking = rows(x);
      const int64_t width = gated_ ? 2 * head_dim : head_dim;
      Tensor q = (*q_)(asking, pass, "attn_query").view({asking.size(0), heads_, width}), gate;
      if (gated_) {
        gate = q.narrow(2, head_dim, head_dim).flatten(1);
        q = q.narrow(2, 0, head_dim);
      }
      return {q, (*k_)(x, pass, "attn_key").view({tokens, -1, head_dim}),
              (*v_)(x, pass, "attn_value").view({tokens, -1, v_dim}), gate};
    }
    const Tensor all = (*qkv_)(x, pass, "attn_qkv");
    // By one split the gradients of the parts are put together once; of slices each would be a tensor as large as all.
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

  Tensor growth(const Tensor& positions, at::ScalarType type) const {
    const Tensor step = (positions + growth_.shift).floor_divide(growth_.length);
    return ((step.to(at::kFloat) + 1).log() * growth_.factor + 1).to(type).view({-1, 1, 1});
  }

  nn::LinearOptions linear(const DecoderSpec& spec, bool bias, Split split, double deviation) const {
    return {bias, split, deviation, spec.transposed, region_};
  }

  LayerSizes sizes_;  // of all ranks
  nn::Region region_;
  int64_t heads_, kv_heads_;  // of this rank
  int64_t layer_;
  QkvLayout layout_;
  bool gated_, norm_after_rope_;
  double clip_, value_multiplier_;
  QueryGrowth growth_;
  double residual_dropout_;
  const ops::RopeSpec* rope_ = nullptr;
  ops::AttentionSpec attention_;
  std::optional<nn::Linear> qkv_, q_, k_, v_;
  std::optional<HeadNorm> q_norm_, k_norm_;
  std::optional<nn::Norm> mixed_norm_;
  nn::Parameter sinks_;
  nn::Linear output_;
};

}  // namespace

LayerSizes sizes_of(const DecoderSpec& spec, int64_t layer) {
  const DecoderLayerSpec& own = spec.layers[size_t(layer)];
  const auto or_else = [](int64_t value, int64_t otherwise) { return value > 0 ? value : otherwise; };
  LayerSizes sizes{or_else(own.heads, spec.heads), or_else(own.kv_heads, spec.kv_heads),
                   or_else(own.head_dim, spec.head_dim), 0, or_else(own.intermediate, spec.intermediate)};
  sizes.v_dim = or_else(own.v_dim, or_else(spec.v_dim, sizes.head_dim));
  return sizes;
}

std::unique_ptr<nn::Layer> build_attention(const Scope& scope, const DecoderSpec& spec, int64_t layer) {
  return std::make_unique<Attention>(scope, spec, layer);
}

}  // namespace easydel::models
