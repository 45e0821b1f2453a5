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

class Attention final : public nn::Part {
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

  nn::LayerOutput forward(const Tensor& outside, Pass& pass) const override {
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
    return {pass.dropout("attention_dropout", out, residual_dropout_), {}};
  }

  nn::CacheLayer cache() const override { return {kv_heads_, head_dim_, head_dim_, {}}; }

  double mixing_flops(int64_t length) const override {
    const double half = double(length) / 2, window = double(attention_.window);
    return 4.0 * double(heads_ * region_.parts() * head_dim_) * (window > 0 ? std::min(window, half) : half);
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

// The mlp of a dense block.
class Feed final : public nn::Part {
 public:
  Feed(const Scope& block, const DecoderSpec& spec) : residual_dropout_(spec.residual_dropout) {
    const nn::LinearOptions up = linear(spec, spec.mlp_bias, Split::output, spec.deviation);
    const nn::LinearOptions down = linear(spec, spec.mlp_bias, Split::input, spec.output_deviation);
    const Scope scope = block / spec.names.mlp;
    if (spec.gated)
      gated_.emplace(scope, spec.hidden, spec.intermediate, spec.activation, up);
    else
      mlp_.emplace(scope, spec.hidden, spec.intermediate, spec.activation, up, down,
                   nn::Mlp::Names{spec.names.up, spec.names.down});
  }

  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override {
    const Tensor out = gated_ ? (*gated_)(x, pass) : (*mlp_)(x, pass);
    return {pass.dropout("mlp_dropout", out, residual_dropout_), {}};
  }

 private:
  double residual_dropout_;
  std::optional<nn::GatedMlp> gated_;
  std::optional<nn::Mlp> mlp_;
};

class Block final : public nn::Layer {
 public:
  Block(const Scope& scope, const DecoderSpec& spec, const ops::RopeSpec* rope, int64_t index)
      : nn::Layer(scope.path()), names_(spec.names), parallel_(spec.parallel_residual) {
    const size_t mark = scope.mark();
    const DecoderLayerSpec& own = spec.layers[size_t(index)];
    input_norm_.emplace(scope / names_.input_norm, spec.hidden, spec.norm);
    mixer_ = own.mixer ? own.mixer(scope, index)
                       : std::make_unique<Attention>(scope / names_.attention, spec, rope, index);
    post_norm_.emplace(scope / names_.post_norm, spec.hidden, spec.norm);
    feed_ = own.feed ? own.feed(scope, index) : std::make_unique<Feed>(scope, spec);
    set_parameters(scope.since(mark));
  }

  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override {
    nn::LayerOutput out;
    const auto run = [&](const nn::Part& part, const Tensor& normed) {
      nn::LayerOutput made = part.forward(normed, pass);
      out.extras.merge(made.extras);
      return made.x;
    };
    const auto feed = [&](const Tensor& normed) {
      return pass.name(names_.mlp, pass.name("mlp_output", run(*feed_, normed)));
    };
    const Tensor mixed = pass.name(names_.attention, run(*mixer_, (*input_norm_)(x)));
    if (parallel_) {
      out.x = x + mixed + feed((*post_norm_)(x));
      return out;
    }
    const Tensor middle = pass.name("residual", x + mixed);
    out.x = middle + feed((*post_norm_)(middle));
    return out;
  }

  nn::CacheLayer cache() const override { return mixer_->cache(); }
  double mixing_flops(int64_t length) const override { return mixer_->mixing_flops(length) + feed_->mixing_flops(length); }
  double idle_elements() const override { return mixer_->idle_elements() + feed_->idle_elements(); }

 private:
  const DecoderNames& names_;
  bool parallel_;
  std::optional<nn::Norm> input_norm_, post_norm_;
  std::unique_ptr<nn::Part> mixer_, feed_;
};

class Decoder final : public Model {
 public:
  Decoder(DecoderSpec spec, nn::Building& building) : spec_(std::move(spec)), compute_(building.compute) {
    const Scope root(building), base = root / spec_.names.base;
    embedding_.emplace(base / spec_.names.embedding, spec_.vocabulary, spec_.hidden, spec_.deviation, Split::vocabulary,
                       spec_.padding);
    if (spec_.learned_positions)
      positions_.emplace(base / spec_.names.positions, spec_.max_positions, spec_.hidden, spec_.deviation, Split::none);
    const ops::RopeSpec* rope = spec_.rope ? &*spec_.rope : nullptr;
    for (size_t i = 0; i < spec_.layers.size(); ++i) {
      const Scope scope = (base / spec_.names.layers / int64_t(i)).unit(int(i));
      const auto& build = spec_.layers[i].block;
      blocks_.push_back(build ? build(scope, int64_t(i)) : std::make_unique<Block>(scope, spec_, rope, int64_t(i)));
    }
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
    for (size_t i = 0; i < blocks_.size(); ++i) {
      nn::LayerOutput made = nn::run_layer(pass, int64_t(i), *blocks_[i], x);
      x = made.x;
      for (auto& [name, extra] : made.extras) out.extras.emplace(str(name, ".", i), std::move(extra));
    }
    out.hidden = pass.name(spec_.names.base + "." + spec_.names.norm, (*norm_)(x));
    pass.finish();
    return out;
  }

  const nn::Head& head() const override { return *head_; }
  int64_t layers() const override { return int64_t(blocks_.size()); }
  int64_t vocabulary() const override { return spec_.vocabulary; }
  int64_t max_positions() const override { return spec_.max_positions; }

  std::unique_ptr<nn::Cache> make_cache(int64_t slots, int64_t length) const override {
    nn::CacheShape shape{{}, compute_, embedding_->weight().entry().shard.device()};
    for (const auto& block : blocks_) shape.layers.push_back(block->cache());
    return std::make_unique<nn::Cache>(shape, slots, length);
  }

  double training_flops_per_token(int64_t length) const override {
    double weights = double(spec_.vocabulary) * double(spec_.hidden), mixing = 0;
    for (const nn::Entry& entry : parameters().entries())
      if (entry.unit >= 0) weights += double(entry.elements());
    for (const auto& block : blocks_) {
      weights -= block->idle_elements();
      mixing += block->mixing_flops(length);
    }
    return 6.0 * weights + 3.0 * mixing;
  }

 private:
  DecoderSpec spec_;
  at::ScalarType compute_;
  std::optional<nn::Embedding> embedding_, positions_;
  std::vector<std::unique_ptr<nn::Layer>> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::LmHead> head_;
};

}  // namespace

std::unique_ptr<Model> build_decoder(DecoderSpec spec, nn::Building& building) {
  return std::make_unique<Decoder>(std::move(spec), building);
}

}  // namespace easydel::models
