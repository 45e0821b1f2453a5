// xLSTM (arXiv 2405.04517, 2503.13427): a matrix memory per head with exponential gates for writing and forgetting.
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/recurrent_keys.h"
#include "easydel/nn/weight.h"
#include "easydel/ops/exponential.h"
#include "easydel/ops/norm.h"
#include "easydel/ops/softplus.h"

namespace easydel::models::zoo::xlstm {
namespace {

struct MatrixMemorySpec {
  int64_t hidden = 0, heads = 0, k_dim = 0, v_dim = 0;  // dims of a head
  bool fused = false, bias = false;
  double gate_cap = 15.0, epsilon = 1e-6, norm_epsilon = 1e-6;
  double deviation = 0.02, output_deviation = 0.02;
};

class MatrixMemory final : public nn::Layer {
 public:
  MatrixMemory(const nn::Scope& scope, const MatrixMemorySpec& spec, int64_t layer)
      : spec_(spec),
        layer_(layer),
        out_(scope / "out_proj", spec.heads * spec.v_dim, spec.hidden,
             {.bias = spec.bias, .deviation = spec.output_deviation}) {
    const auto linear = [&](std::optional<nn::Linear>& to, const char* name, int64_t size, double deviation) {
      to.emplace(scope / name, spec.hidden, size, nn::LinearOptions{.bias = spec.bias, .deviation = deviation});
    };
    const int64_t heads = spec.heads, k = heads * spec.k_dim, v = heads * spec.v_dim;
    // Gates initially have no input: little is written, most is kept.
    const auto gates = [&](const char* name, int64_t size, nn::Initial bias) {
      const nn::Scope own = scope / name;
      return Gates{own.parameter("weight", {size, spec.hidden}, nn::Role::weight,
                                 {.initial = nn::Initial::zeros(), .easydel_name = "kernel"}),
                   own.parameter("bias", {size}, nn::Role::bias, {.initial = std::move(bias)})};
    };
    const auto forget = [heads](int64_t i) { return heads > 1 ? 3.0 + 3.0 * double(i) / double(heads - 1) : 3.0; };
    if (spec.fused) {
      linear(qkvo_, "qkv_opreact", 2 * k + 2 * v, spec.deviation);
      both_ = gates("ifgate_preact", 2 * heads,
                    nn::Initial::each([=](int64_t i, double) { return i < heads ? -10.0 : forget(i - heads); }));
    } else {
      linear(q_, "q", k, spec.deviation);
      linear(k_, "k", k, spec.deviation);
      linear(v_, "v", v, spec.deviation);
      linear(o_, "ogate_preact", v, 0.0);
      write_ = gates("igate_preact", heads, nn::Initial::constant(-10.0));
      keep_ = gates("fgate_preact", heads, nn::Initial::each([=](int64_t i, double) { return forget(i); }));
    }
    if (spec.bias) norm_bias_ = (scope / "multihead_norm").parameter("bias", {v}, nn::Role::norm, {});
    norm_ = (scope / "multihead_norm")
                .parameter("weight", {v}, nn::Role::norm, {.initial = nn::Initial::ones(), .easydel_name = "scale"});
  }

  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override {
    const int64_t tokens = x.size(0), heads = spec_.heads, k_all = heads * spec_.k_dim, v_all = heads * spec_.v_dim;
    Tensor q, k, v, o, write, keep;
    if (spec_.fused) {
      const Tensor all = (*qkvo_)(x, pass, "mixer_in"), gates = both_(x, spec_.gate_cap, pass);
      q = all.narrow(1, 0, k_all), k = all.narrow(1, k_all, k_all), v = all.narrow(1, 2 * k_all, v_all);
      o = all.narrow(1, 2 * k_all + v_all, v_all);
      write = gates.narrow(1, 0, heads), keep = gates.narrow(1, heads, heads);
    } else {
      q = (*q_)(x, pass, "mixer_query"), k = (*k_)(x, pass, "mixer_key"), v = (*v_)(x, pass, "mixer_value");
      o = (*o_)(x, pass, "mixer_gate");
      write = write_(x, spec_.gate_cap, pass), keep = keep_(x, spec_.gate_cap, pass);
    }
    // Everything is scaled by exp(-m), with m the running maximum of the memory's exponents, so that no exponential
    // overflows.
    const Tensor kept = -ops::softplus(-keep);
    const ops::RunningMaximum m = pass.stream().running_maximum(layer_, 1, kept, write);
    ops::RecurrenceTensors memory;
    memory.q = q.to(at::kFloat).view({tokens, heads, spec_.k_dim}) * (1.0 / std::sqrt(double(spec_.k_dim)));
    memory.k = k.to(at::kFloat).view({tokens, heads, spec_.k_dim}) * ops::exponential(write - m.after).unsqueeze(2);
    // An additional column of ones next to the values sums the weights.
    const Tensor values = v.to(at::kFloat).view({tokens, heads, spec_.v_dim});
    memory.v = at::cat({values, at::ones({tokens, heads, 1}, values.options())}, 2);
    memory.rate = m.before + kept - m.after;
    const Tensor read = pass.stream().recurrent(layer_, 0, {}, memory);
    const Tensor weight =
        at::maximum(read.narrow(2, spec_.v_dim, 1).abs(), ops::exponential(-m.after).unsqueeze(2)) + spec_.epsilon;
    const Tensor h = (read.narrow(2, 0, spec_.v_dim) / weight).to(x.scalar_type());
    Tensor y =
        ops::layer_norm(h, {}, {}, spec_.norm_epsilon).reshape({tokens, v_all}) * norm_.value().to(x.scalar_type());
    if (norm_bias_) y = y + norm_bias_.value().to(x.scalar_type());
    return {out_(ops::activate(o, ops::Activation::sigmoid) * y, pass, "mixer_output"), {}};
  }

  nn::CacheLayer cache() const override {
    return {.states = {{spec_.heads, spec_.k_dim, spec_.v_dim + 1}, {spec_.heads}}};
  }
  double mixing_flops(int64_t) const override { return 6.0 * double(spec_.heads * spec_.k_dim * (spec_.v_dim + 1)); }

 private:
  struct Gates {
    nn::Parameter weight, bias;
    // fp32 [tokens, size], soft-capped
    Tensor operator()(const Tensor& x, double cap, nn::Pass& pass) const {
      const Tensor raw = weight.entry().weight->product(x, bias.value(), {}, pass).to(at::kFloat);
      return cap * ops::activate(raw / cap, ops::Activation::tanh);
    }
  };

  MatrixMemorySpec spec_;
  int64_t layer_;
  std::optional<nn::Linear> qkvo_, q_, k_, v_, o_;
  Gates both_, write_, keep_;
  nn::Parameter norm_, norm_bias_;
  nn::Linear out_;
};

// A gated mlp whose gate starts from zero.
class Feed final : public nn::Layer {
 public:
  Feed(const nn::Scope& scope, const DecoderSpec& spec)
      : region_(scope.team(), {spec.intermediate}),
        activation_(spec.activation),
        gate_(scope / "proj_up_gate", spec.hidden, spec.intermediate, options(spec, nn::Split::output, 0.0)),
        up_(scope / "proj_up", spec.hidden, spec.intermediate, options(spec, nn::Split::output, spec.deviation)),
        down_(scope / "proj_down", spec.intermediate, spec.hidden,
              options(spec, nn::Split::input, spec.output_deviation)) {}

  nn::LayerOutput forward(const Tensor& outside, nn::Pass& pass) const override {
    const Tensor x = region_.enter(outside), gate = gate_(x, pass, "mlp_gate"), up = up_(x, pass, "mlp_up");
    return {down_.gated(gate, up, activation_, pass, "mlp_down"), {}};
  }

 private:
  nn::LinearOptions options(const DecoderSpec& spec, nn::Split split, double deviation) const {
    return {.bias = spec.mlp_bias, .split = split, .deviation = deviation, .region = region_};
  }

  nn::Region region_;
  ops::Activation activation_;
  nn::Linear gate_, up_, down_;
};

int64_t in_multiples(double size, int64_t of) { return (int64_t(size) + of - 1) / of * of; }

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.names = {.base = "backbone",
                .embedding = "embeddings",
                .layers = "blocks",
                .norm = "out_norm",
                .before_mixer = "norm_mlstm",
                .before_feed = "norm_ffn",
                .attention = "mlstm_layer",
                .mlp = "ffn",
                .up = "proj_up",
                .down = "proj_down"};
  spec.vocabulary = read_size(config, "vocab_size", 50304);
  spec.hidden = read_size(config, "hidden_size", config.integer("embedding_dim", 4096));
  spec.layers.resize(size_t(read_size(config, "num_blocks", config.integer("num_hidden_layers", 32))));
  spec.norm = {.epsilon = config.number("norm_eps", 1e-6)};
  spec.logit_softcap = config.number("output_logit_soft_cap", 30.0);
  const bool bias = config.boolean("use_bias", false);
  spec.mlp_bias = spec.norm.shift = bias;
  spec.last_norm = spec.norm;
  spec.last_norm->shift = false;
  spec.intermediate = in_multiples(double(spec.hidden) * config.number("ffn_proj_factor", 2.667),
                                   read_size(config, "ffn_round_up_to_multiple_of", 64));
  spec.activation = ops::Activation::silu;
  spec.deviation = std::sqrt(2.0 / (5.0 * double(spec.hidden)));
  const auto output_deviation = [layers = double(spec.layers.size())](int64_t inputs) {
    return 2.0 / layers / std::sqrt(double(inputs));
  };
  spec.output_deviation = output_deviation(spec.intermediate);

  MatrixMemorySpec memory;
  memory.hidden = spec.hidden;
  memory.heads = read_size(config, "num_heads", 8);
  const auto dim = [&](const char* key, double otherwise) {
    const int64_t all = int64_t(double(spec.hidden) * config.number(key, otherwise));
    if (all < 1 || all % memory.heads != 0)
      config.refuse_key(key, str(all, " channels are not divided by num_heads, ", memory.heads));
    return all / memory.heads;
  };
  memory.k_dim = dim("qk_dim_factor", 0.5);
  memory.v_dim = dim("v_dim_factor", 1.0);
  memory.gate_cap = config.number("gate_soft_cap", 15.0);
  memory.epsilon = config.number("eps", 1e-6);
  memory.norm_epsilon = spec.norm.epsilon;
  memory.deviation = spec.deviation;
  memory.output_deviation = output_deviation(spec.hidden);
  const std::string mode = config.text("weight_mode", "single");
  if (mode != "single" && mode != "fused")
    config.refuse_key("weight_mode", str("'", mode, "' is not known"), "known: single, fused");
  memory.fused = mode == "fused";
  memory.bias = bias;
  if (memory.fused) spec.names.gate_up = "proj_up_gate_z";
  const auto whole = std::make_shared<const DecoderSpec>(spec);
  for (DecoderLayerSpec& layer : spec.layers) {
    layer.mixer = [memory](const nn::Scope& block, int64_t index) {
      return std::make_unique<MatrixMemory>(block / "mlstm_layer", memory, index);
    };
    if (!memory.fused)
      layer.feed = [whole](const nn::Scope& block, int64_t) { return std::make_unique<Feed>(block / "ffn", *whole); };
  }
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"xlstm", "backbone", {}, build, false}; }

}  // namespace easydel::models::zoo::xlstm
