#include "easydel/nn/delta.h"

#include <ATen/ops/cat.h>

#include <cmath>

#include "easydel/ops/norm.h"
#include "easydel/ops/softplus.h"

namespace easydel::nn {
namespace {

Tensor value_in_fp32(const Parameter& p) { return p.value().to(at::kFloat); }

// x / sqrt(sum(x^2) + 1e-6) over the last dimension, times `scale`; fp32.
Tensor unit(const Tensor& x, double scale) {
  const double size = double(x.size(-1));
  return ops::rms_norm(x.to(at::kFloat).contiguous(), {}, 1e-6 / size) * (scale / std::sqrt(size));
}

// Queries and keys of the recurrence, [tokens, heads, k_dim], normed to length 1; queries are scaled by 1 /
// sqrt(k_dim).
ops::RecurrenceTensors lookup(const Tensor& q, const Tensor& k) {
  ops::RecurrenceTensors in;
  in.q = unit(q, 1.0 / std::sqrt(double(q.size(-1))));
  in.k = unit(k, 1.0);
  return in;
}

Norm::Options of_read(const DeltaSpec& spec) { return {.epsilon = spec.epsilon}; }

double delta_flops(const DeltaSpec& spec) { return 10.0 * double(spec.v_heads * spec.k_dim * spec.v_dim); }

LinearOptions plain(double deviation) { return {.deviation = deviation}; }

}  // namespace

GatedDelta::GatedDelta(const Scope& scope, const DeltaSpec& spec, bool fused, int64_t layer)
    : spec_(spec),
      fused_(fused),
      layer_(layer),
      keys_(spec.k_heads * spec.k_dim),
      values_(spec.v_heads * spec.v_dim),
      convolution_(scope / "conv1d", 2 * keys_ + values_, spec.width, false, Initial::normal(spec.deviation)),
      norm_(scope / "norm", spec.v_dim, of_read(spec)),
      out_(scope / "out_proj", values_, spec.hidden, plain(spec.output_deviation)) {
  const auto linear = [&](std::optional<Linear>& to, const char* name, int64_t size) {
    to.emplace(scope / name, spec.hidden, size, plain(spec.deviation));
  };
  if (fused) {
    linear(qkv_, "in_proj_qkvz", 2 * keys_ + 2 * values_);
    linear(b_, "in_proj_ba", 2 * spec.v_heads);
  } else {
    linear(qkv_, "in_proj_qkv", 2 * keys_ + values_);
    linear(z_, "in_proj_z", values_);
    linear(b_, "in_proj_b", spec.v_heads);
    linear(a_, "in_proj_a", spec.v_heads);
  }
  step_bias_ = scope.parameter("dt_bias", {spec.v_heads}, Role::bias, {.initial = Initial::ones()});
  a_log_ =
      scope.parameter("A_log", {spec.v_heads}, Role::other,
                      {.initial = Initial::each([](int64_t, double u) { return std::log(0.01 + u * (16.0 - 0.01)); })});
}

GatedDelta::Projected GatedDelta::project(const Tensor& x, Pass& pass) const {
  const int64_t tokens = x.size(0), heads = spec_.k_heads, each = spec_.v_heads / heads;
  const Tensor all = (*qkv_)(x, pass, "mixer_in"), b = (*b_)(x, pass, "mixer_beta");
  if (!fused_)
    return {all, (*z_)(x, pass, "mixer_gate").view({tokens, spec_.v_heads, spec_.v_dim}), b,
            (*a_)(x, pass, "mixer_decay")};
  // Key head by key head: q, k, its values, their gates; its betas, their decays.
  const Tensor of_head = all.view({tokens, heads, -1}), scalars = b.view({tokens, heads, 2 * each});
  const auto cut = [&](int64_t begin, int64_t size) { return of_head.narrow(2, begin, size).reshape({tokens, -1}); };
  const int64_t k = spec_.k_dim, v = each * spec_.v_dim;
  return {at::cat({cut(0, k), cut(k, k), cut(2 * k, v)}, 1),
          cut(2 * k + v, v).view({tokens, spec_.v_heads, spec_.v_dim}),
          scalars.narrow(2, 0, each).reshape({tokens, spec_.v_heads}),
          scalars.narrow(2, each, each).reshape({tokens, spec_.v_heads})};
}

LayerOutput GatedDelta::forward(const Tensor& outside, Pass& pass) const {
  const int64_t tokens = outside.size(0);
  const Projected in = project(pass.stream().visible(outside), pass);
  const Tensor mixed = ops::activate(convolution_(in.qkv, layer_, 0, pass), spec_.activation);
  const auto heads = [&](int64_t begin, int64_t count, int64_t dim) {
    return mixed.narrow(1, begin, count * dim).view({tokens, count, dim});
  };
  ops::RecurrenceTensors scan = lookup(heads(0, spec_.k_heads, spec_.k_dim), heads(keys_, spec_.k_heads, spec_.k_dim));
  scan.v = heads(2 * keys_, spec_.v_heads, spec_.v_dim);
  scan.beta = ops::activate(in.b, ops::Activation::sigmoid);
  scan.rate = -value_in_fp32(a_log_).exp() * ops::softplus(in.a.to(at::kFloat) + value_in_fp32(step_bias_));
  const Tensor read = pass.stream().recurrent(layer_, 1, {.delta = true}, scan).to(outside.scalar_type());
  const Tensor gate = ops::activate(in.gate.to(at::kFloat), ops::Activation::silu);
  const Tensor y = (norm_(read).to(at::kFloat) * gate).to(outside.scalar_type());
  return {out_(y.reshape({tokens, values_}), pass, "mixer_output"), {}};
}

CacheLayer GatedDelta::cache() const {
  return {.states = {convolution_.state(), {spec_.v_heads, spec_.k_dim, spec_.v_dim}}};
}
double GatedDelta::mixing_flops(int64_t) const { return delta_flops(spec_); }

KimiDelta::KimiDelta(const Scope& scope, const DeltaSpec& spec, int64_t layer)
    : spec_(spec),
      layer_(layer),
      channels_(spec.v_heads * spec.v_dim),
      q_(scope / "q_proj", spec.hidden, channels_, plain(spec.deviation)),
      k_(scope / "k_proj", spec.hidden, channels_, plain(spec.deviation)),
      v_(scope / "v_proj", spec.hidden, channels_, plain(spec.deviation)),
      q_convolution_(scope / "q_conv1d", channels_, spec.width, false, Initial::normal(spec.deviation)),
      k_convolution_(scope / "k_conv1d", channels_, spec.width, false, Initial::normal(spec.deviation)),
      v_convolution_(scope / "v_conv1d", channels_, spec.width, false, Initial::normal(spec.deviation)),
      forget_in_(scope / "f_a_proj", spec.hidden, spec.v_dim, plain(spec.deviation)),
      forget_out_(scope / "f_b_proj", spec.v_dim, channels_, plain(spec.deviation)),
      beta_(scope / "b_proj", spec.hidden, spec.v_heads, plain(spec.deviation)),
      gate_in_(scope / "g_a_proj", spec.hidden, spec.v_dim, plain(spec.deviation)),
      gate_out_(scope / "g_b_proj", spec.v_dim, channels_, plain(spec.deviation)),
      norm_(scope / "o_norm", spec.v_dim, of_read(spec)),
      out_(scope / "o_proj", channels_, spec.hidden, plain(spec.output_deviation)) {
  step_bias_ = scope.parameter("dt_bias", {channels_}, Role::bias, {.initial = TimeSteps().initial()});
  a_log_ = scope.parameter("A_log", {1, 1, spec.v_heads, 1}, Role::other,
                           {.initial = Initial::each([](int64_t, double u) { return std::log(1.0 + u * 15.0); })});
}

LayerOutput KimiDelta::forward(const Tensor& outside, Pass& pass) const {
  const int64_t tokens = outside.size(0);
  const std::vector<int64_t> per_head = {tokens, spec_.v_heads, spec_.v_dim};
  const Tensor x = pass.stream().visible(outside);
  const auto mixed = [&](const Linear& linear, const ShortConvolution& convolution, size_t state, const char* name) {
    return ops::activate(convolution(linear(x, pass, name), layer_, state, pass), spec_.activation).view(per_head);
  };
  const Tensor q = mixed(q_, q_convolution_, 0, "mixer_query"), k = mixed(k_, k_convolution_, 1, "mixer_key");
  ops::RecurrenceTensors scan = lookup(q, k);
  scan.v = mixed(v_, v_convolution_, 2, "mixer_value");
  scan.beta = ops::activate(beta_(x, pass, "mixer_beta"), ops::Activation::sigmoid);
  const Tensor forget = forget_out_(forget_in_(x, pass, "mixer_forget_in"), pass, "mixer_forget").to(at::kFloat);
  const Tensor step = ops::softplus((forget + value_in_fp32(step_bias_)).view(per_head));
  scan.rate = -value_in_fp32(a_log_).exp().view({1, spec_.v_heads, 1}) * step;
  const Tensor read = pass.stream().recurrent(layer_, 3, {.delta = true}, scan).to(outside.scalar_type());
  const Tensor gate = gate_out_(gate_in_(x, pass, "mixer_gate_in"), pass, "mixer_gate").view(per_head);
  const Tensor y = (norm_(read).to(at::kFloat) * ops::activate(gate.to(at::kFloat), ops::Activation::sigmoid))
                       .to(outside.scalar_type());
  return {out_(y.reshape({tokens, channels_}), pass, "mixer_output"), {}};
}

CacheLayer KimiDelta::cache() const {
  return {.states = {q_convolution_.state(),
                     k_convolution_.state(),
                     v_convolution_.state(),
                     {spec_.v_heads, spec_.k_dim, spec_.v_dim}}};
}
double KimiDelta::mixing_flops(int64_t) const { return delta_flops(spec_); }

}  // namespace easydel::nn
