// The parts of a decoder as its spec says them, for families that build a block themselves or differ in one place.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "easydel/models/decoder.h"
#include "easydel/nn/region.h"

namespace easydel::models {

// Sizes of a layer: its own, else the spec's.
LayerSizes sizes_of(const DecoderSpec& spec, int64_t layer);

// Attention as the spec says it. A family that differs in one place derives from it and sets
// DecoderSpec::attention_builder.
class DecoderAttention : public nn::Layer {
 public:
  // divided false: every rank computes all heads, even where they could be divided over the tensor axis.
  DecoderAttention(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer, bool divided = true);

  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override { return forward(x, pass, false); }
  nn::LayerOutput forward_requested(const Tensor& x, nn::Pass& pass) const override { return forward(x, pass, true); }
  nn::CacheLayer cache() const override {
    return {kv_heads_, sizes_.head_dim, sizes_.v_dim, {}, attention_.window, attention_.chunk};
  }
  double mixing_flops(int64_t length) const override;

 protected:
  // Changes values [tokens, kv_heads, v_dim] before they are attended to.
  virtual Tensor adjust_values(const Tensor& v) const { return v; }
  // Changes what enters the output projection: [tokens, heads * v_dim].
  virtual Tensor before_output(const Tensor& mixed) const { return mixed; }

 private:
  struct Projected {
    Tensor q, k, v;  // [tokens, heads of this rank, dim]
    Tensor gate;     // [tokens, heads * dim]; undefined: there is none
  };

  // `requested`: queries of the requested tokens alone.
  nn::LayerOutput forward(const Tensor& outside, nn::Pass& pass, bool requested) const;
  // Queries and gates are of the requested tokens, if `requested`.
  Projected project(const Tensor& x, nn::Pass& pass, bool requested) const;
  Tensor query_scale(const Tensor& positions, at::ScalarType type) const;

  LayerSizes sizes_;  // of all ranks
  nn::Region region_;
  int64_t heads_, kv_heads_;  // of this rank
  int64_t layer_;
  QkvLayout layout_;
  bool gated_, norm_after_rope_;
  double clip_;
  QueryScaling query_scaling_;
  double residual_dropout_;
  const ops::RopeSpec* rope_ = nullptr;
  ops::AttentionSpec attention_;
  std::optional<nn::Linear> qkv_, q_, k_, v_;
  std::unique_ptr<HeadNorm> q_norm_, k_norm_;
  nn::Parameter sinks_;
  nn::Linear output_;
};

// x [tokens, heads, size] normed over each head, times weight [heads, size].
Tensor norm_of_each_head(const Tensor& x, const Tensor& weight, const nn::Norm::Options& options);

// The first and the second half of both [tokens, 2 * size], each contiguous.
std::pair<Tensor, Tensor> halves(const Tensor& gate_and_up);

// `scope` is the part's own ("model.layers.3.self_attn"). The spec outlives what is built.
std::unique_ptr<nn::Layer> build_attention(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer);
std::unique_ptr<nn::Layer> build_feed(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer);
// `scope` is the block's ("model.layers.3").
std::unique_ptr<nn::Layer> build_block(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer);
// The table, multiplier, learned positions and norm that the spec says. `base` is the stack's scope ("model").
std::unique_ptr<DecoderEmbedding> build_embedding(const nn::Scope& base, const DecoderSpec& spec);

// For learned positions that count some tokens only: the position of each token that counts[token] is 1 for, and -1
// where it is 0. counts: int64 [tokens]
Tensor counted_positions(const Tensor& counts, const nn::Stream& stream);

}  // namespace easydel::models
