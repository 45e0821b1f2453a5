#include "easydel/models/gemma_parts.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_parts.h"

namespace easydel::models {

using nn::Pass;
using nn::Scope;
using nn::Split;

namespace {

nn::LinearOptions plain(const DecoderSpec& spec, bool bias = false) {
  return {.bias = bias, .split = Split::none, .deviation = spec.deviation};
}

}  // namespace

std::vector<int64_t> shared_sources(const ConfigReader& config, const std::vector<bool>& sliding, int64_t sharing) {
  const auto layers = int64_t(sliding.size());
  if (sharing < 0 || sharing >= layers)
    config.refuse_key("num_kv_shared_layers", str(sharing, " of ", layers, " layers cannot share"));
  std::vector<int64_t> sources;
  for (int64_t i = 0; i < layers; ++i) {
    int64_t source = i;
    if (i >= layers - sharing) {
      source = layers - sharing - 1;
      while (source >= 0 && sliding[size_t(source)] != sliding[size_t(i)]) --source;
      if (source < 0)
        config.refuse_key("num_kv_shared_layers", str("layer ", i, " has no earlier layer of its kind to share with"));
    }
    sources.push_back(source);
  }
  return sources;
}

std::vector<std::string_view> unused_keys_and_values() {
  return {".self_attn.k_proj.", ".self_attn.v_proj.", ".self_attn.k_norm.", ".self_attn.v_norm."};
}

GemmaRow::GemmaRow(const DecoderSpec& spec, int64_t hidden, int64_t input, std::vector<int64_t> sources)
    : hidden_(hidden), input_(input), sources_(std::move(sources)) {
  for (size_t i = 0; i < sources_.size(); ++i) {
    const LayerSizes sizes = sizes_of(spec, int64_t(i));
    widths_.push_back(2 * sizes.kv_heads * sizes.head_dim);
  }
}

bool GemmaRow::keeps(int64_t layer) const {
  return std::find(sources_.begin() + layer + 1, sources_.end(), layer) != sources_.end();
}

int64_t GemmaRow::stored_width(int64_t before) const {
  int64_t width = 0;
  for (int64_t i = 0; i < before; ++i) width += keeps(i) ? widths_[size_t(i)] : 0;
  return width;
}

GemmaRow::Parts GemmaRow::take(int64_t layer, const Tensor& x) const {
  const int64_t stored = stored_width(layer), end = hidden_ + stored + input_;
  Parts parts;
  parts.hidden = x.narrow(1, 0, hidden_);
  parts.kept = x.narrow(1, hidden_, stored);
  parts.input = x.narrow(1, hidden_ + stored, input_);
  parts.later = x.narrow(1, end, x.size(1) - end);
  const int64_t source = sources_[size_t(layer)];
  if (source != layer) parts.stored = parts.kept.narrow(1, stored_width(source), widths_[size_t(source)]);
  return parts;
}

Tensor GemmaRow::join(int64_t layer, const Parts& parts, const Tensor& hidden, const Tensor& own) const {
  if (keeps(layer)) return at::cat({hidden, parts.kept, own, parts.later}, 1);
  return parts.kept.size(1) + parts.later.size(1) == 0 ? hidden : at::cat({hidden, parts.kept, parts.later}, 1);
}

GemmaAttention::GemmaAttention(const Scope& scope, const DecoderSpec& spec, int64_t layer, int64_t source,
                               bool keys_as_values)
    : source_(source), own_(source == layer) {
  const DecoderLayerSpec& own = spec.layers[size_t(layer)];
  const LayerSizes sizes = sizes_of(spec, layer), from = sizes_of(spec, source);
  heads_ = sizes.heads;
  kv_heads_ = from.kv_heads;
  head_dim_ = sizes.head_dim;
  check(from.head_dim == head_dim_, "attention: layer ", layer, " shares with heads of another size");
  const nn::LinearOptions options = plain(spec, spec.qkv_bias);
  q_.emplace(scope / "q_proj", spec.hidden, heads_ * head_dim_, options);
  q_norm_.emplace(scope / "q_norm", head_dim_, spec.norm);
  if (own_) {
    k_.emplace(scope / "k_proj", spec.hidden, kv_heads_ * head_dim_, options);
    if (!keys_as_values) v_.emplace(scope / "v_proj", spec.hidden, kv_heads_ * head_dim_, options);
    k_norm_.emplace(scope / "k_norm", head_dim_, spec.norm);
    nn::Norm::Options without = spec.norm;
    without.weight = false;
    v_norm_.emplace(scope / "v_norm", head_dim_, without);
  }
  output_.emplace(scope / "o_proj", heads_ * head_dim_, spec.hidden, options);
  rope_ = own.rope ? own.rope.get() : &*spec.rope;
  if (!spec.causal) attention_.kind = ops::AttentionKind::full;
  attention_.scale = 1.0;
  attention_.window = own.attention.window;
  attention_.dropout = spec.attention_dropout;
}

Tensor GemmaAttention::operator()(const Tensor& x, Pass& pass, const Tensor& stored, Tensor* own) const {
  const int64_t tokens = x.size(0), half = kv_heads_ * head_dim_;
  const auto heads = [&](const Tensor& t) { return t.reshape({tokens, -1, head_dim_}); };
  const ops::RopeTable& table = pass.stream().rope_table(*rope_);
  const Tensor q = ops::rope((*q_norm_)(heads((*q_)(x, pass, "attn_query"))), table);
  Tensor k, v;
  if (own_) {
    const Tensor keys = heads((*k_)(x, pass, "attn_key"));
    v = (*v_norm_)(v_ ? heads((*v_)(x, pass, "attn_value")) : keys);
    k = ops::rope((*k_norm_)(keys), table);
  } else {
    k = heads(stored.narrow(1, 0, half));
    v = heads(stored.narrow(1, half, half));
  }
  if (own) *own = at::cat({k.reshape({tokens, half}), v.reshape({tokens, half})}, 1);
  // A sharing layer stores nothing itself and reads the source's cache.
  const Tensor mixed = pass.attend(source_, attention_, q, k, v);
  return (*output_)(mixed.reshape({tokens, heads_ * head_dim_}), pass, "attn_output");
}

nn::CacheLayer GemmaAttention::cache() const {
  return own_ ? nn::CacheLayer{kv_heads_, head_dim_, head_dim_, {}, attention_.window} : nn::CacheLayer{};
}

double GemmaAttention::mixing_flops(int64_t length) const {
  const double half = double(length) / 2, window = double(attention_.window);
  return 4.0 * double(heads_ * head_dim_) * (window > 0 ? std::min(window, half) : half);
}

GemmaInputs::GemmaInputs(const Scope& base, const DecoderSpec& spec, int64_t rows, int64_t size)
    : rows_(rows),
      layers_(int64_t(spec.layers.size())),
      size_(size),
      scale_(std::pow(double(spec.hidden), -0.5)),
      table_(base / "embed_tokens_per_layer", rows, layers_ * size, spec.deviation, Split::vocabulary,
             spec.padding < rows ? spec.padding : -1),
      projection_(base / "per_layer_model_projection", spec.hidden, layers_ * size, plain(spec)),
      norm_(base / "per_layer_projection_norm", size, spec.norm) {}

Tensor GemmaInputs::operator()(const Tensor& tokens, const Tensor& embedded, Pass& pass) const {
  // Tokens outside the table use its first row.
  const Tensor known = at::where(tokens < rows_, tokens, at::zeros_like(tokens));
  const Tensor own = table_(known, pass) * std::sqrt(double(size_));
  const Tensor projected = projection_(embedded, pass, "per_layer_projection") * scale_;
  const Tensor normed =
      norm_(projected.reshape({tokens.size(0), layers_, size_})).reshape({tokens.size(0), layers_ * size_});
  return (normed + own) * std::sqrt(0.5);
}

GemmaInputGate::GemmaInputGate(const Scope& block, const DecoderSpec& spec, int64_t size)
    : activation_(spec.activation),
      gate_(block / "per_layer_input_gate", spec.hidden, size, plain(spec)),
      projection_(block / "per_layer_projection", size, spec.hidden, plain(spec)),
      norm_(block / "post_per_layer_input_norm", spec.hidden, spec.norm) {}

Tensor GemmaInputGate::operator()(const Tensor& x, const Tensor& input, Pass& pass) const {
  const Tensor gate = gate_(x, pass, "per_layer_gate");
  return norm_(projection_(ops::activate(gate, activation_) * input, pass, "per_layer_output"));
}

}  // namespace easydel::models
