#include "easydel/nn/mamba.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/nn/weight.h"
#include "easydel/ops/norm.h"
#include "easydel/ops/softplus.h"

namespace easydel::nn {
namespace {

Tensor in_fp32(const Parameter& p) { return p.value().to(at::kFloat); }

// A_log: states decay at rates of 1, 2, 3, ... along the last dimension.
Initial rates() {
  return Initial::each([](int64_t last, double) { return std::log(double(last + 1)); });
}

Initial or_normal(const std::optional<Initial>& given, double deviation) {
  return given.value_or(Initial::normal(deviation));
}

// Number of equal heads, each as large as possible up to 64 channels: the unit of the scan.
int64_t heads_of(int64_t channels) {
  for (int64_t size = std::min<int64_t>(64, channels); size > 1; --size)
    if (channels % size == 0) return channels / size;
  return channels;
}

}  // namespace

Initial TimeSteps::initial() const {
  return Initial::each([own = *this](int64_t, double u) {
    const double step = std::exp(u * (std::log(own.most) - std::log(own.least)) + std::log(own.least));
    const double bounded = std::max(step, own.floor);
    return bounded + std::log(-std::expm1(-bounded));  // softplus gives the step
  });
}

Mamba::Mamba(const Scope& scope, const MambaSpec& spec, int64_t layer)
    : spec_(spec),
      layer_(layer),
      heads_(heads_of(spec.inner)),
      in_(scope / "in_proj", spec.hidden, 2 * spec.inner, {.bias = spec.bias, .deviation = spec.deviation}),
      convolution_(scope / "conv1d", spec.inner, spec.width, spec.convolution_bias,
                   or_normal(spec.kernel, spec.deviation)),
      parts_(scope / "x_proj", spec.inner, spec.rank + 2 * spec.state, {.deviation = spec.deviation}),
      out_(scope / "out_proj", spec.inner, spec.hidden,
           {.bias = spec.bias, .deviation = spec.deviation, .initial = spec.output}) {
  const Scope steps = scope / "dt_proj";
  step_weight_ = steps.parameter("weight", {spec.inner, spec.rank}, Role::weight,
                                 {.initial = or_normal(spec.step_weight, spec.deviation), .easydel_name = "kernel"});
  step_bias_ = steps.parameter("bias", {spec.inner}, Role::bias, {.initial = spec.step_bias});
  a_log_ = scope.parameter("A_log", {spec.inner, spec.state}, Role::other, {.initial = rates()});
  skip_ = scope.parameter("D", {spec.inner}, Role::other, {.initial = Initial::ones()});
  if (spec.norms == MambaSpec::Norms::learned) {
    const Norm::Options norm{.epsilon = spec.epsilon};
    step_norm_.emplace(scope / "dt_layernorm", spec.rank, norm);
    b_norm_.emplace(scope / "b_layernorm", spec.state, norm);
    c_norm_.emplace(scope / "c_layernorm", spec.state, norm);
  }
}

Tensor Mamba::normed(const Tensor& x, const std::optional<Norm>& norm) const {
  if (spec_.norms == MambaSpec::Norms::none) return x;
  return norm ? (*norm)(x.contiguous()) : ops::rms_norm(x.contiguous(), {}, spec_.epsilon);
}

LayerOutput Mamba::forward(const Tensor& outside, Pass& pass) const {
  const int64_t tokens = outside.size(0), inner = spec_.inner, state = spec_.state, size = inner / heads_;
  const Tensor projected = in_(pass.stream().visible(outside), pass, "mixer_in");
  const Tensor gate = projected.narrow(1, inner, inner);
  const Tensor convolved = convolution_(projected.narrow(1, 0, inner), layer_, 0, pass);
  const Tensor x = pass.stream().visible(ops::activate(convolved, spec_.activation));
  const Tensor parts = parts_(x, pass, "mixer_parts");
  const Tensor rank = normed(parts.narrow(1, 0, spec_.rank), step_norm_);
  const Tensor b = normed(parts.narrow(1, spec_.rank, state), b_norm_);
  const Tensor c = normed(parts.narrow(1, spec_.rank + state, state), c_norm_);
  const Tensor raw = step_weight_.entry().weight->product(rank.contiguous(), {}, {}, pass);
  const Tensor step = ops::softplus(raw.to(at::kFloat) + in_fp32(step_bias_));
  const Tensor wide_x = x.to(at::kFloat);

  ops::RecurrenceTensors scan;
  scan.q = c.view({tokens, 1, state});
  scan.k = b.view({tokens, 1, state});
  scan.v = (wide_x * step).view({tokens, heads_, size});
  scan.by_column = step.view({tokens, heads_, size});
  scan.slopes = -in_fp32(a_log_).exp().view({heads_, size, state}).transpose(1, 2);
  const Tensor read = pass.stream().recurrent(layer_, 1, {}, scan).view({tokens, inner});
  const Tensor y = (read + wide_x * in_fp32(skip_)) * ops::activate(gate.to(at::kFloat), ops::Activation::silu);
  return {out_(y.to(outside.scalar_type()), pass, "mixer_output"), {}};
}

CacheLayer Mamba::cache() const {
  return {.states = {convolution_.state(), {heads_, spec_.state, spec_.inner / heads_}}};
}

double Mamba::mixing_flops(int64_t) const { return 6.0 * double(spec_.inner * spec_.state); }

Mamba2::Mamba2(const Scope& scope, const Mamba2Spec& spec, int64_t layer)
    : spec_(spec),
      layer_(layer),
      mixed_(spec.inner + 2 * spec.groups * spec.state),
      in_(scope / "in_proj", spec.hidden, spec.inner + mixed_ + spec.heads,
          {.bias = spec.bias, .deviation = spec.deviation}),
      convolution_(scope / "conv1d", mixed_, spec.width, spec.convolution_bias, or_normal(spec.kernel, spec.deviation)),
      out_(scope / "out_proj", spec.inner, spec.hidden,
           {.bias = spec.output_bias, .deviation = spec.deviation, .initial = spec.output}) {
  check(spec.heads * spec.head_dim == spec.inner, "mamba2: ", spec.heads, " heads of ", spec.head_dim, " are not ",
        spec.inner);
  step_bias_ = scope.parameter("dt_bias", {spec.heads}, Role::bias, {.initial = spec.step_bias});
  a_log_ = scope.parameter("A_log", {spec.heads}, Role::other, {.initial = rates()});
  if (spec.gate != Mamba2Spec::Gate::no_norm)
    norm_ = (scope / "norm")
                .parameter("weight", {spec.inner}, Role::norm, {.initial = Initial::ones(), .easydel_name = "kernel"});
  skip_ = scope.parameter("D", {spec.heads}, Role::other, {.initial = Initial::ones()});
  if (std::any_of(spec.multipliers.begin(), spec.multipliers.end(), [](double m) { return m != 1.0; })) {
    const int64_t sizes[] = {spec.inner, spec.inner, spec.groups * spec.state, spec.groups * spec.state, spec.heads};
    std::vector<Tensor> parts;
    for (size_t i = 0; i < 5; ++i)
      parts.push_back(at::full({sizes[i]}, spec.multipliers[i], at::TensorOptions().dtype(at::kFloat)));
    multipliers_ = at::cat(parts);
  }
}

// [tokens, inner] fp32: y, gated and normed group by group.
Tensor Mamba2::gated(const Tensor& y, const Tensor& gate) const {
  const auto gates = [&](const Tensor& t) { return t * ops::activate(gate.to(at::kFloat), ops::Activation::silu); };
  if (spec_.gate == Mamba2Spec::Gate::no_norm) return gates(y);
  const Tensor before = spec_.gate == Mamba2Spec::Gate::before_norm ? gates(y) : y;
  const Tensor unit =
      ops::rms_norm(before.reshape({-1, spec_.inner / spec_.groups}), {}, spec_.epsilon).view(y.sizes());
  const Tensor out = unit * in_fp32(norm_);
  return spec_.gate == Mamba2Spec::Gate::after_norm ? gates(out) : out;
}

bool Mamba2::is_bounded() const { return spec_.min_step > 0.0 || std::isfinite(spec_.max_step); }

// Bounds the steps of prompt tokens alone: neither transformers nor the kernels of the paper's authors bound the step
// of a token that is decoded by itself.
Tensor Mamba2::bounded(const Tensor& step, const Pass& pass) const {
  Tensor out = at::clamp(step, spec_.min_step, spec_.max_step);
  for (const TokenSpan& span : pass.stream().spans())
    if (!span.prompt) out.slice(0, span.begin, span.end).copy_(step.slice(0, span.begin, span.end));
  return out;
}

LayerOutput Mamba2::forward(const Tensor& outside, Pass& pass) const {
  const int64_t tokens = outside.size(0), inner = spec_.inner, group_states = spec_.groups * spec_.state;
  Tensor input = pass.stream().visible(outside);
  if (spec_.input_multiplier != 1.0) input = input * spec_.input_multiplier;
  Tensor projected = in_(input, pass, "mixer_in");
  if (multipliers_.defined()) projected = projected * multipliers_.to(projected.device(), projected.scalar_type());
  const Tensor gate = projected.narrow(1, 0, inner);
  const Tensor convolved = convolution_(projected.narrow(1, inner, mixed_), layer_, 0, pass);
  const Tensor mixed = pass.stream().visible(ops::activate(convolved, spec_.activation)).to(at::kFloat);
  const Tensor raw = projected.narrow(1, inner + mixed_, spec_.heads).to(at::kFloat) + in_fp32(step_bias_);
  Tensor step = ops::softplus(raw);
  if (is_bounded()) step = bounded(step, pass);
  const Tensor x = mixed.narrow(1, 0, inner).view({tokens, spec_.heads, spec_.head_dim});

  ops::RecurrenceTensors scan;
  scan.k = mixed.narrow(1, inner, group_states).view({tokens, spec_.groups, spec_.state});
  scan.q = mixed.narrow(1, inner + group_states, group_states).view({tokens, spec_.groups, spec_.state});
  scan.v = x * step.unsqueeze(2);
  scan.rate = -in_fp32(a_log_).exp() * step;
  const Tensor read = pass.stream().recurrent(layer_, 1, {}, scan) + x * in_fp32(skip_).unsqueeze(1);
  const Tensor y = gated(read.view({tokens, inner}), gate);
  return {out_(y.to(outside.scalar_type()), pass, "mixer_output"), {}};
}

CacheLayer Mamba2::cache() const {
  return {.states = {convolution_.state(), {spec_.heads, spec_.state, spec_.head_dim}}, .by_role = is_bounded()};
}

double Mamba2::mixing_flops(int64_t) const { return 6.0 * double(spec_.inner * spec_.state); }

}  // namespace easydel::nn
