#include "easydel/models/decoder.h"

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/nn/cache.h"

namespace easydel::models {
namespace {

using nn::Initial;
using nn::Pass;
using nn::Scope;
using nn::Split;

nn::LinearOptions linear(const DecoderSpec& spec, bool bias, Split split, double deviation) {
  return {bias, split, deviation, spec.transposed, {}};
}

// Heads are divided over the tensor axis where both kinds divide; where q, k and v are one weight they lie one after
// the other in it, and attention's dropout counts the heads of all ranks: those stay whole.
nn::Region attention_region(const Scope& scope, const DecoderSpec& spec) {
  if (spec.fused_qkv || spec.attention_dropout > 0) return {};
  return nn::Region(scope.team(), {spec.heads, spec.kv_heads});
}

class Attention {
 public:
  Attention(const Scope& scope, const DecoderSpec& spec, const ops::RopeSpec* rope, int64_t layer)
      : region_(attention_region(scope, spec)), heads_(spec.heads / region_.parts()),
        kv_heads_(spec.kv_heads / region_.parts()), head_dim_(spec.head_dim), layer_(layer), rope_(rope),
        residual_dropout_(spec.residual_dropout),
        output_(scope / spec.names.output, spec.heads * spec.head_dim, spec.hidden,
                in_region(linear(spec, spec.output_bias, Split::input, spec.output_deviation))) {
    const auto options = in_region(linear(spec, spec.qkv_bias, Split::output, spec.deviation));
    const int64_t q = spec.heads * head_dim_, kv = spec.kv_heads * head_dim_;
    if (spec.fused_qkv) {
      qkv_.emplace(scope / spec.names.qkv, spec.hidden, q + 2 * kv, options);
    } else {
      q_.emplace(scope / "q_proj", spec.hidden, q, options);
      k_.emplace(scope / "k_proj", spec.hidden, kv, options);
      v_.emplace(scope / "v_proj", spec.hidden, kv, options);
    }
    if (spec.qk_norm) {
      nn::Norm::Options norm = spec.norm;
      norm.in_region = region_.divided();
      q_norm_.emplace(scope / "q_norm", head_dim_, norm);
      k_norm_.emplace(scope / "k_norm", head_dim_, norm);
    }
    const DecoderLayerSpec& own = spec.layers[size_t(layer)];
    attention_.scale = own.scale;
    attention_.window = own.window;
    attention_.dropout = spec.attention_dropout;
  }

  Tensor operator()(const Tensor& outside, Pass& pass) const {
    const Tensor x = region_.enter(outside);
    const auto per_head = [&](const Tensor& t) { return t.view({t.size(0), -1, head_dim_}); };
    Tensor q, k, v;
    if (qkv_) {
      const Tensor all = (*qkv_)(x, pass, "attn_qkv").view({x.size(0), heads_ + 2 * kv_heads_, head_dim_});
      q = all.narrow(1, 0, heads_);
      k = all.narrow(1, heads_, kv_heads_);
      v = all.narrow(1, heads_ + kv_heads_, kv_heads_);
    } else {
      q = per_head((*q_)(x, pass, "attn_query"));
      k = per_head((*k_)(x, pass, "attn_key"));
      v = per_head((*v_)(x, pass, "attn_value"));
    }
    if (q_norm_) q = (*q_norm_)(q), k = (*k_norm_)(k);
    if (rope_) {
      const ops::RopeTable& table = pass.rope_table(*rope_);
      q = ops::rope(q, table);
      k = ops::rope(k, table);
    }
    const Tensor mixed = pass.attend(layer_, attention_, q, k, v).reshape({x.size(0), heads_ * head_dim_});
    const Tensor out = output_(mixed, pass, "attn_output");
    return pass.dropout("attention_dropout", out, residual_dropout_);
  }

 private:
  nn::LinearOptions in_region(nn::LinearOptions options) const {
    options.region = region_;
    return options;
  }

  nn::Region region_;
  int64_t heads_, kv_heads_;  // of this rank
  int64_t head_dim_, layer_;
  const ops::RopeSpec* rope_;
  double residual_dropout_;
  ops::AttentionSpec attention_;
  std::optional<nn::Linear> qkv_, q_, k_, v_;
  std::optional<nn::Norm> q_norm_, k_norm_;
  nn::Linear output_;
};

class Block final : public nn::Layer {
 public:
  Block(const Scope& scope, const DecoderSpec& spec, const ops::RopeSpec* rope, int64_t index)
      : nn::Layer(scope.path()), names_(spec.names), parallel_(spec.parallel_residual), residual_dropout_(spec.residual_dropout) {
    const size_t mark = scope.mark();
    const nn::LinearOptions up = linear(spec, spec.mlp_bias, Split::output, spec.deviation);
    const nn::LinearOptions down = linear(spec, spec.mlp_bias, Split::input, spec.output_deviation);
    input_norm_.emplace(scope / names_.input_norm, spec.hidden, spec.norm);
    attention_.emplace(scope / names_.attention, spec, rope, index);
    post_norm_.emplace(scope / names_.post_norm, spec.hidden, spec.norm);
    if (spec.gated)
      gated_.emplace(scope / names_.mlp, spec.hidden, spec.intermediate, spec.activation, up);
    else
      mlp_.emplace(scope / names_.mlp, spec.hidden, spec.intermediate, spec.activation, up, down,
                   nn::Mlp::Names{names_.up, names_.down});
    set_parameters(scope.since(mark));
  }

  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override {
    const Tensor attended = pass.name(names_.attention, (*attention_)((*input_norm_)(x), pass));
    if (parallel_) return {x + attended + feed((*post_norm_)(x), pass), {}};
    const Tensor middle = pass.name("residual", x + attended);
    return {middle + feed((*post_norm_)(middle), pass), {}};
  }

 private:
  Tensor feed(const Tensor& x, Pass& pass) const {
    const Tensor out = gated_ ? (*gated_)(x, pass) : (*mlp_)(x, pass);
    const Tensor dropped = pass.dropout("mlp_dropout", out, residual_dropout_);
    return pass.name(names_.mlp, pass.name("mlp_output", dropped));
  }

  const DecoderNames& names_;
  bool parallel_;
  double residual_dropout_;
  std::optional<nn::Norm> input_norm_, post_norm_;
  std::optional<Attention> attention_;
  std::optional<nn::GatedMlp> gated_;
  std::optional<nn::Mlp> mlp_;
};

class Decoder final : public Model {
 public:
  Decoder(DecoderSpec spec, nn::Building& building) : spec_(std::move(spec)), compute_(building.compute) {
    const Scope root(building), base = root / spec_.names.base;
    cached_heads_ = spec_.kv_heads / attention_region(root, spec_).parts();
    embedding_.emplace(base / spec_.names.embedding, spec_.vocabulary, spec_.hidden, spec_.deviation, Split::vocabulary,
                       spec_.padding);
    if (spec_.learned_positions)
      positions_.emplace(base / spec_.names.positions, spec_.max_positions, spec_.hidden, spec_.deviation, Split::none);
    const ops::RopeSpec* rope = spec_.rope ? &*spec_.rope : nullptr;
    for (size_t i = 0; i < spec_.layers.size(); ++i)
      blocks_.push_back(std::make_unique<Block>((base / spec_.names.layers / int64_t(i)).unit(int(i)), spec_, rope, int64_t(i)));
    norm_.emplace(base / spec_.names.norm, spec_.hidden, spec_.norm);
    nn::Parameter head = embedding_->weight();
    if (!spec_.tied)
      head = (root / spec_.names.head)
                 .parameter("weight", {spec_.vocabulary, spec_.hidden}, nn::Role::weight,
                            {Split::vocabulary, Initial::normal(spec_.deviation), "kernel", false});
    head_.emplace(head);
  }

  Outputs forward(const Inputs& inputs, Pass& pass) const override {
    const auto& stream = pass.stream();
    check(inputs.tokens.dim() == 1 && inputs.tokens.size(0) == stream.tokens(), "forward: ", inputs.tokens.sizes(),
          " tokens, the pass has ", stream.tokens());
    if (pass.attention == "auto") pass.attention = attention();
    Tensor x = (*embedding_)(inputs.tokens);
    if (positions_) x = x + (*positions_)(stream.positions);
    x = pass.name("embeddings", pass.dropout("embedding_dropout", x, spec_.embedding_dropout));
    Outputs out;
    for (size_t i = 0; i < blocks_.size(); ++i) x = nn::run_layer(pass, int64_t(i), *blocks_[i], x).x;
    out.hidden = pass.name(spec_.names.base + "." + spec_.names.norm, (*norm_)(x));
    pass.finish();
    return out;
  }

  const nn::Head& head() const override { return *head_; }
  int64_t layers() const override { return int64_t(blocks_.size()); }
  int64_t vocabulary() const override { return spec_.vocabulary; }
  int64_t max_positions() const override { return spec_.max_positions; }

  std::unique_ptr<nn::Cache> make_cache(int64_t slots, int64_t length) const override {
    const nn::CacheShape shape{layers(), cached_heads_, spec_.head_dim, spec_.head_dim, compute_,
                               embedding_->weight().entry().shard.device()};
    return std::make_unique<nn::Cache>(shape, slots, length);
  }

  double training_flops_per_token(int64_t length) const override {
    double weights = double(spec_.vocabulary) * double(spec_.hidden), attention = 0;
    for (const nn::Entry& entry : parameters().entries())
      if (entry.unit >= 0) weights += double(entry.elements());
    for (const DecoderLayerSpec& layer : spec_.layers) {
      const double seen = layer.window > 0 ? std::min(double(layer.window), double(length) / 2) : double(length) / 2;
      attention += 12.0 * double(spec_.heads * spec_.head_dim) * seen;
    }
    return 6.0 * weights + attention;
  }

 private:
  DecoderSpec spec_;
  at::ScalarType compute_;
  int64_t cached_heads_ = 0;  // of this rank
  std::optional<nn::Embedding> embedding_, positions_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::LmHead> head_;
};

}  // namespace

std::unique_ptr<Model> build_decoder(DecoderSpec spec, nn::Building& building) {
  return std::make_unique<Decoder>(std::move(spec), building);
}

}  // namespace easydel::models
