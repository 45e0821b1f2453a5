// Gemma 3n, text: four parallel copies of the hidden state, of which one is computed and the others are predicted and
// corrected (AltUp, arXiv 2301.13310); a learned low-rank residual; an extra input for each layer; the last layers
// reuse the keys and values of earlier ones.
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/full.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/std.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/gemma_parts.h"

namespace easydel::models::zoo::gemma3n_text {
namespace {

using nn::Pass;
using nn::Scope;

// What the blocks and the boundary share.
struct Plan {
  DecoderSpec spec;
  int64_t input = 0, input_rows = 0;  // of the additional inputs of each layer
  int64_t streams = 0, active = 0, rank = 0;
  bool scale_corrected = true;
  std::vector<double> sparsity;  // of each layer's gates
  std::optional<GemmaRow> row;
};

nn::LinearOptions plain(const DecoderSpec& spec) { return {.deviation = spec.deviation}; }

// Predicts all streams from one another, and corrects them by the result of the active one. Streams [tokens, n,
// hidden].
class AltUp {
 public:
  AltUp(const Scope& scope, const Plan& plan)
      : n_(plan.streams),
        active_(plan.active),
        router_scale_(1.0 / double(plan.spec.hidden)),
        correct_(scope / "correction_coefs", n_, n_, plain(plan.spec)),
        predict_(scope / "prediction_coefs", n_, n_ * n_, plain(plan.spec)),
        router_(scope / "modality_router", plan.spec.hidden, n_, plain(plan.spec)),
        norm_(scope / "router_norm", plan.spec.hidden, plan.spec.norm) {
    scale_ = scope.parameter("correct_output_scale", {plan.spec.hidden}, nn::Role::norm, {});
  }

  Tensor predict(const Tensor& streams, Pass& pass) const {
    const Tensor mixing = predict_(modalities(streams.select(1, active_), pass), pass, "altup_predict");
    return at::bmm(mixing.reshape({-1, n_, n_}), streams) + streams;
  }
  Tensor correct(const Tensor& predicted, const Tensor& computed, Pass& pass) const {
    const Tensor shares = correct_(modalities(computed, pass), pass, "altup_correct") + 1.0;
    const Tensor news = computed - predicted.select(1, active_);
    return predicted + shares.unsqueeze(2) * news.unsqueeze(1);
  }
  Tensor scaled(const Tensor& x) const { return x * scale_.value().to(x.scalar_type()); }

 private:
  Tensor modalities(const Tensor& x, Pass& pass) const {
    return router_(norm_(x.contiguous()) * router_scale_, pass, "altup_router")
        .to(at::kFloat)
        .tanh()
        .to(x.scalar_type());
  }

  int64_t n_, active_;
  double router_scale_;
  nn::Linear correct_, predict_, router_;
  nn::Norm norm_;
  nn::Parameter scale_;
};

// x + norm(right(left(x)))
class Laurel {
 public:
  Laurel(const Scope& scope, const Plan& plan)
      : left_(scope / "linear_left", plan.spec.hidden, plan.rank, plain(plan.spec)),
        right_(scope / "linear_right", plan.rank, plan.spec.hidden, plain(plan.spec)),
        norm_(scope / "post_laurel_norm", plan.spec.hidden, plan.spec.norm) {}
  Tensor operator()(const Tensor& x, Pass& pass) const {
    return x + norm_(right_(left_(x, pass, "laurel_left"), pass, "laurel_right"));
  }

 private:
  nn::Linear left_, right_;
  nn::Norm norm_;
};

// A gated mlp that keeps only the largest gates of a row; the threshold follows from a normal distribution with the
// gates' mean and deviation.
class SparseFeed final : public nn::Layer {
 public:
  SparseFeed(const Scope& scope, const DecoderSpec& spec, int64_t inner, double sparsity)
      : activation_(spec.activation),
        gate_(scope / "gate_proj", spec.hidden, inner, plain(spec)),
        up_(scope / "up_proj", spec.hidden, inner, plain(spec)),
        down_(scope / "down_proj", inner, spec.hidden, plain(spec)) {
    const Tensor share = at::full({}, sparsity, at::TensorOptions().dtype(at::kFloat));
    deviations_ = (at::erfinv(share * 2 - 1) * std::sqrt(2.0)).item<double>();
  }
  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override {
    const Tensor gate = gate_(x, pass, "mlp_gate");
    const Tensor cut = gate.mean(-1, true) + at::std(gate, {-1}, /*correction=*/0.0, true) * deviations_;
    return {down_.gated(at::relu(gate - cut), up_(x, pass, "mlp_up"), activation_, pass, "mlp_down"), {}};
  }

 private:
  ops::Activation activation_;
  nn::Linear gate_, up_, down_;
  double deviations_;
};

class Block final : public nn::Layer {
 public:
  Block(const Scope& scope, std::shared_ptr<const Plan> plan, int64_t layer) : plan_(std::move(plan)), layer_(layer) {
    const DecoderSpec& spec = plan_->spec;
    const auto norm = [&](std::optional<nn::Norm>& place, const char* name) {
      place.emplace(scope / name, spec.hidden, spec.norm);
    };
    norm(before_mixer_, "input_layernorm");
    attention_.emplace(scope / "self_attn", spec, layer, plan_->row->source(layer), false);
    norm(after_mixer_, "post_attention_layernorm");
    norm(before_feed_, "pre_feedforward_layernorm");
    const double sparsity = plan_->sparsity[size_t(layer)];
    if (sparsity > 0)
      feed_ = std::make_unique<SparseFeed>(scope / "mlp", spec, sizes_of(spec, layer).intermediate, sparsity);
    else
      feed_ = build_feed(scope / "mlp", spec, layer);
    norm(after_feed_, "post_feedforward_layernorm");
    altup_.emplace(scope / "altup", *plan_);
    laurel_.emplace(scope / "laurel", *plan_);
    gate_.emplace(scope, spec, plan_->input);
  }

  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override {
    const GemmaRow::Parts parts = plan_->row->take(layer_, x);
    const Tensor predicted = altup_->predict(parts.hidden.reshape({x.size(0), plan_->streams, -1}), pass);
    const Tensor active = predicted.select(1, plan_->active).contiguous(), normed = (*before_mixer_)(active);
    const Tensor low_rank = (*laurel_)(normed, pass);
    Tensor own;
    const Tensor mixed = (*attention_)(normed, pass, parts.stored, plan_->row->keeps(layer_) ? &own : nullptr);
    const Tensor gated = active + (*after_mixer_)(pass.name("self_attn", mixed));
    const Tensor middle = (gated + low_rank) * std::sqrt(0.5);
    const Tensor fed = pass.name("mlp", feed_->forward((*before_feed_)(middle), pass).x);
    const Tensor corrected = altup_->correct(predicted, middle + (*after_feed_)(fed), pass);
    Tensor first = corrected.select(1, plan_->active).contiguous();
    if (plan_->scale_corrected) first = altup_->scaled(first);
    const Tensor added = (*gate_)(first, parts.input, pass).unsqueeze(1);
    const Tensor streams = at::cat({corrected.narrow(1, 0, 1), corrected.narrow(1, 1, plan_->streams - 1) + added}, 1);
    return {plan_->row->join(layer_, parts, streams.reshape({x.size(0), -1}), own), {}};
  }

  nn::CacheLayer cache() const override { return attention_->cache(); }
  double mixing_flops(int64_t length) const override { return attention_->mixing_flops(length); }

 private:
  std::shared_ptr<const Plan> plan_;
  int64_t layer_;
  std::optional<nn::Norm> before_mixer_, after_mixer_, before_feed_, after_feed_;
  std::optional<GemmaAttention> attention_;
  std::unique_ptr<nn::Layer> feed_;
  std::optional<AltUp> altup_;
  std::optional<Laurel> laurel_;
  std::optional<GemmaInputGate> gate_;
};

// Expands an embedding into the streams, and reduces them to one row again; all streams have the magnitude of the
// first.
class Boundary final : public StackBoundary {
 public:
  Boundary(const Scope& base, std::shared_ptr<const Plan> plan)
      : plan_(std::move(plan)), inputs_(base, plan_->spec, plan_->input_rows, plan_->input) {
    const int64_t hidden = plan_->spec.hidden;
    for (int64_t i = 0; i + 1 < plan_->streams; ++i) {
      split_.emplace_back(base / "altup_projections" / i, hidden, hidden, plain(plan_->spec));
      merge_.emplace_back(base / "altup_unembed_projections" / i, hidden, hidden, plain(plan_->spec));
    }
  }

  Tensor enter(const Inputs& inputs, const Tensor& embedded, Pass& pass) const override {
    std::vector<Tensor> row = {embedded};
    for (const nn::Linear& split : split_) row.push_back(as_large_as(split(embedded, pass, "altup_split"), embedded));
    row.push_back(inputs_(inputs.tokens, embedded, pass));
    return at::cat(row, 1);
  }
  Tensor leave(const Tensor& x, Pass& pass) const override {
    const int64_t hidden = plan_->spec.hidden;
    const auto stream = [&](int64_t i) { return x.narrow(1, i * hidden, hidden).contiguous(); };
    std::vector<Tensor> streams = {stream(0)};
    for (size_t i = 0; i < merge_.size(); ++i)
      streams.push_back(as_large_as(merge_[i](stream(int64_t(i) + 1), pass, "altup_merge"), streams[0]));
    return at::stack(streams).mean(0);
  }

 private:
  static Tensor as_large_as(const Tensor& x, const Tensor& like) {
    const Tensor size = x.square().mean(-1, true).clamp_min(1e-5).sqrt();
    return x * like.square().mean(-1, true).sqrt() / size;
  }

  std::shared_ptr<const Plan> plan_;
  GemmaInputs inputs_;
  std::vector<nn::Linear> split_, merge_;
};

std::vector<double> sparsity_of(const ConfigReader& config, size_t layers) {
  const Value* given = config.find("activation_sparsity_pattern");
  if (!given) {
    std::vector<double> usual(layers, 0.0);
    for (size_t i = 0; layers > 10 && i < 10; ++i) usual[i] = 0.95;
    return usual;
  }
  std::vector<double> out;
  for (const Value& item : given->items) out.push_back(item.as_double().value_or(-1.0));
  for (const double share : out)
    if (share < 0.0 || share >= 1.0) config.refuse_key("activation_sparsity_pattern", "has a value outside of 0 to 1");
  check_one_a_layer(config, "activation_sparsity_pattern", out.size(), size_t(layers));
  return out;
}

// intermediate_size may be one number, or one for each layer.
Value one_intermediate(const ConfigReader& config, const Value& whole) {
  Value copy = whole;
  if (const auto sizes = config.find("intermediate_size"); sizes && sizes->is_list() && !sizes->items.empty())
    copy.set("intermediate_size", sizes->items.front());
  return copy;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  const auto plan = std::make_shared<Plan>();
  const Value simple = one_intermediate(config, config.document());
  plan->spec = read_decoder(ConfigReader(simple, config.where()), {.vocabulary = 262400,
                                                                   .hidden = 2048,
                                                                   .intermediate = 16384,
                                                                   .layers = 35,
                                                                   .heads = 8,
                                                                   .kv_heads = 2,
                                                                   .head_dim = 256,
                                                                   .max_positions = 32768,
                                                                   .rope = {.by_layer_type = true},
                                                                   .activation_key = "hidden_activation",
                                                                   .activation = "gelu_pytorch_tanh",
                                                                   .padding = 0,
                                                                   .tied = true});
  DecoderSpec& spec = plan->spec;
  spec.norm.wide = true;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.embedding_multiplier = std::sqrt(double(spec.hidden));
  spec.logit_softcap = config.number("final_logit_softcapping", config.has("final_logit_softcapping") ? 0.0 : 30.0);
  const auto sliding = read_sliding_layers(config, spec.layers.size(), all_but_each(5));
  set_windows(spec, sliding, read_window(config, 512));
  const auto local = std::make_shared<const ops::RopeSpec>(config.rope_of(
      "sliding_attention", spec.head_dim, spec.max_positions, config.number("rope_local_base_freq", 10000.0)));
  spec.rope = config.rope_of("full_attention", spec.head_dim, spec.max_positions, config.number("rope_theta", 1e6),
                             "rope_scaling");
  for (size_t i = 0; i < spec.layers.size(); ++i)
    if (sliding[i]) spec.layers[i].rope = local;
  if (const auto sizes = config.find("intermediate_size"); sizes && sizes->is_list()) {
    const auto inner = config.integers("intermediate_size");
    check_one_a_layer(config, "intermediate_size", inner.size(), spec.layers.size());
    for (size_t i = 0; i < inner.size(); ++i) spec.layers[i].sizes.intermediate = inner[i];
  }
  plan->sparsity = sparsity_of(config, spec.layers.size());
  const auto size = [&](const char* key, int64_t otherwise) { return read_size(config, key, key, otherwise); };
  plan->input = size("hidden_size_per_layer_input", 256);
  plan->input_rows = size("vocab_size_per_layer_input", 262144);
  plan->streams = size("altup_num_inputs", 4);
  plan->active = config.integer("altup_active_idx", 0);
  if (plan->active < 0 || plan->active >= plan->streams)
    config.refuse_key("altup_active_idx", str(plan->active, " is none of ", plan->streams, " streams"));
  plan->rank = size("laurel_rank", 64);
  plan->scale_corrected = config.boolean("altup_correct_scale", true);
  plan->row.emplace(spec, plan->streams * spec.hidden, plan->input,
                    shared_sources(config, sliding, config.integer("num_kv_shared_layers", 15)));
  return build_decoder(with_parts<Block, Boundary>(plan), building);
}

}  // namespace

Family family() {
  return {"gemma3n_text", "model", {"rotary_emb.inv_freq"}, build, true, {}, unused_keys_and_values()};
}

}  // namespace easydel::models::zoo::gemma3n_text
