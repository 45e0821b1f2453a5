// What Gemma 3n and Gemma 4 add to other decoders: inputs for each layer from a table of their own, and layers that
// reuse the keys and values of an earlier layer. Both travel from block to block in the rows of x.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "easydel/models/config_reader.h"
#include "easydel/models/decoder.h"

namespace easydel::models {

// Which layer's keys and values each layer reads: its own, or those of the last layer of its kind before the
// sharing ones. UserError if a kind of layer has no layer to share with.
std::vector<int64_t> shared_sources(const ConfigReader& config, const std::vector<bool>& sliding, int64_t sharing);

// Family::ignored_parts: published files contain unused keys and values of the sharing layers.
std::vector<std::string_view> unused_keys_and_values();

// Layout of a row between blocks: [hidden | keys and values for later layers | inputs of this layer and later ones].
class GemmaRow {
 public:
  // hidden: what blocks work on, all of it. input: size of one layer's input, 0: none. sources: as shared_sources.
  GemmaRow(const DecoderSpec& spec, int64_t hidden, int64_t input, std::vector<int64_t> sources);

  struct Parts {
    Tensor hidden, input, stored;  // stored: keys and values that this layer reads, undefined: its own
    Tensor kept, later;            // passed on unchanged
  };
  Parts take(int64_t layer, const Tensor& x) const;
  // `own`: this layer's keys and values side by side, where keeps(layer).
  Tensor join(int64_t layer, const Parts& parts, const Tensor& hidden, const Tensor& own) const;
  bool keeps(int64_t layer) const;
  int64_t source(int64_t layer) const { return sources_[size_t(layer)]; }

 private:
  int64_t stored_width(int64_t before) const;  // of all layers before that one

  int64_t hidden_, input_;
  std::vector<int64_t> sources_, widths_;  // widths_: of a layer's keys and values together
};

// plan->spec with these blocks and this boundary: Block(scope, plan, index), Boundary(base, plan).
template <class Block, class Boundary, class Plan>
DecoderSpec with_parts(const std::shared_ptr<Plan>& plan) {
  DecoderSpec spec = plan->spec;
  for (DecoderLayerSpec& layer : spec.layers)
    layer.block = [plan](const nn::Scope& scope, int64_t index) -> std::unique_ptr<nn::Layer> {
      return std::make_unique<Block>(scope, plan, index);
    };
  spec.boundary = [plan](const nn::Scope& base) -> std::unique_ptr<StackBoundary> {
    return std::make_unique<Boundary>(base, plan);
  };
  return spec;
}

// Attention with normed queries, keys and values, unscaled.
class GemmaAttention {
 public:
  // keys_as_values: there is no projection of values; values are the keys before their norm.
  GemmaAttention(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer, int64_t source, bool keys_as_values);
  // stored: keys and values of `source`; undefined: it makes its own. `own`: where it is asked for, those.
  Tensor operator()(const Tensor& x, nn::Pass& pass, const Tensor& stored, Tensor* own) const;
  nn::CacheLayer cache() const;
  double mixing_flops(int64_t length) const;

 private:
  int64_t heads_, kv_heads_, head_dim_, source_;
  bool own_;
  const ops::RopeSpec* rope_;
  ops::AttentionSpec attention_;
  std::optional<nn::Linear> q_, k_, v_, output_;
  std::optional<nn::Norm> q_norm_, k_norm_, v_norm_;
};

// The inputs of all layers: a table's row and a projection of the embedding.
class GemmaInputs {
 public:
  GemmaInputs(const nn::Scope& base, const DecoderSpec& spec, int64_t rows, int64_t size);
  Tensor operator()(const Tensor& tokens, const Tensor& embedded, nn::Pass& pass) const;  // -> [tokens, layers * size]

 private:
  int64_t rows_, layers_, size_;
  double scale_;
  nn::Embedding table_;
  nn::Linear projection_;
  nn::Norm norm_;
};

// norm(project(act(gate(x)) * input)): how a layer's input enters.
class GemmaInputGate {
 public:
  GemmaInputGate(const nn::Scope& block, const DecoderSpec& spec, int64_t size);
  Tensor operator()(const Tensor& x, const Tensor& input, nn::Pass& pass) const;

 private:
  ops::Activation activation_;
  nn::Linear gate_, projection_;
  nn::Norm norm_;
};

}  // namespace easydel::models
