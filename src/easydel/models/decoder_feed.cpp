// The mlp of a decoder's block as its spec describes it.
#include "easydel/models/decoder_parts.h"
#include "easydel/ops/activation.h"

namespace easydel::models {
namespace {

using nn::Initial;
using nn::Pass;
using nn::Scope;
using nn::Split;

// The learned numbers of an xIELU activation, under the names of transformers' module.
class Xielu {
 public:
  explicit Xielu(const Scope& scope) {
    const auto number = [&](const char* name, std::vector<int64_t> shape, double start, bool trainable) {
      return scope.parameter(name, std::move(shape), nn::Role::other,
                             {.initial = Initial::constant(start), .trainable = trainable});
    };
    // softplus of the first is 0.8; of the second, with beta added, again 0.8.
    alpha_p_ = number("alpha_p", {1}, 0.2033823208110246, true);
    alpha_n_ = number("alpha_n", {1}, -1.0502256128148464, true);
    beta_ = number("beta", {}, 0.5, false);
    epsilon_ = number("eps", {}, -1e-6, false);
  }

  Tensor operator()(const Tensor& x) const {
    return ops::xielu(x, alpha_p_.value(), alpha_n_.value(), beta_.value(), epsilon_.value());
  }

 private:
  nn::Parameter alpha_p_, alpha_n_, beta_, epsilon_;
};

class Feed final : public nn::Layer {
 public:
  Feed(const Scope& scope, const DecoderSpec& spec, int64_t layer)
      : dropout_(spec.mlp_dropout.value_or(spec.residual_dropout)), activation_(spec.activation) {
    const int64_t inner = sizes_of(spec, layer).intermediate;
    const bool fused = spec.gated && !spec.names.gate_up.empty();
    // One weight for both halves, or an activation with parameters: not divided over ranks.
    if (!fused && !spec.xielu) region_ = nn::Region(scope.team(), {inner});
    const nn::LinearOptions up{spec.mlp_bias, Split::output, spec.deviation, region_};
    const nn::LinearOptions down{spec.mlp_bias, Split::input, spec.output_deviation, region_};
    if (fused) {
      gate_up_.emplace(scope / spec.names.gate_up, spec.hidden, 2 * inner, up);
    } else {
      if (spec.gated) gate_.emplace(scope / spec.names.gate, spec.hidden, inner, up);
      up_.emplace(scope / spec.names.up, spec.hidden, inner, up);
    }
    if (spec.xielu) xielu_.emplace(scope / "act_fn");
    down_.emplace(scope / spec.names.down, inner, spec.hidden, down);
  }

  nn::LayerOutput forward(const Tensor& outside, Pass& pass) const override {
    const Tensor out = feed(region_.enter(outside), pass);
    return {pass.random().dropout("mlp_dropout", out, dropout_), {}};
  }

 private:
  Tensor feed(const Tensor& x, Pass& pass) const {
    if (!gate_ && !gate_up_) {
      const Tensor up = (*up_)(x, pass, "mlp_up");
      return (*down_)(xielu_ ? (*xielu_)(up) : ops::activate(up, activation_), pass, "mlp_down");
    }
    Tensor gate, up;
    if (gate_up_) {
      std::tie(gate, up) = halves((*gate_up_)(x, pass, "mlp_gate_up"));
    } else {
      const nn::Linear::Named both[] = {{&*gate_, "mlp_gate"}, {&*up_, "mlp_up"}};
      const std::vector<Tensor> out = nn::Linear::of_one_input(x, pass, both);
      gate = out[0], up = out[1];
    }
    if (xielu_) return (*down_)((*xielu_)(gate)*up, pass, "mlp_down");
    return down_->gated(gate, up, activation_, pass, "mlp_down");
  }

  nn::Region region_;
  double dropout_;
  ops::Activation activation_;
  std::optional<nn::Linear> gate_, up_, gate_up_, down_;
  std::optional<Xielu> xielu_;
};

}  // namespace

std::pair<Tensor, Tensor> halves(const Tensor& gate_and_up) {
  const int64_t half = gate_and_up.size(1) / 2;
  return {gate_and_up.narrow(1, 0, half).contiguous(), gate_and_up.narrow(1, half, half).contiguous()};
}

std::unique_ptr<nn::Layer> build_feed(const Scope& scope, const DecoderSpec& spec, int64_t layer) {
  return std::make_unique<Feed>(scope, spec, layer);
}

}  // namespace easydel::models
