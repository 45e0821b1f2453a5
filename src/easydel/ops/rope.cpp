#include "easydel/ops/rope.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <numbers>

#include "easydel/base/error.h"
#include "easydel/kernels/fused.h"
#include "easydel/ops/gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto fp32 = at::kFloat;

// arange(0, dim, 2) / dim, rounded to fp32 at each step.
Tensor exponents(int64_t dim) { return at::arange(0, dim, 2, at::TensorOptions().dtype(at::kLong)).to(fp32) / dim; }

Tensor plain_inverse(double theta, int64_t dim) { return at::pow(theta, exponents(dim)).reciprocal(); }

// The base grows with the length. For lengths above the configured one transformers computes it with a tensor, so in
// fp32.
Tensor dynamic(const RopeSpec& s, int64_t length) {
  if (length <= s.max_positions) {
    const double grown = s.factor * double(s.max_positions) / double(s.max_positions) - (s.factor - 1);
    return plain_inverse(s.theta * std::pow(grown, double(s.dim) / double(s.dim - 2)), s.dim);
  }
  const Tensor n = at::full({}, length, at::TensorOptions().dtype(at::kLong));
  const Tensor grown = n * s.factor / s.max_positions - (s.factor - 1);
  const Tensor base = at::pow(grown, double(s.dim) / double(s.dim - 2)) * s.theta;
  return at::pow(base, exponents(s.dim)).reciprocal();
}

double yarn_scale(double scale, double mscale) { return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0; }

Frequencies yarn(const RopeSpec& s) {
  const double attention =
      s.attention_factor ? *s.attention_factor
      : s.mscale && *s.mscale != 0 && s.mscale_all_dim && *s.mscale_all_dim != 0
          ? yarn_scale(s.factor, *s.mscale) / yarn_scale(s.factor, *s.mscale_all_dim) * s.attn_factor
          : yarn_scale(s.factor, 1.0) * s.attn_factor;
  const auto correction = [&](double rotations) {
    return (double(s.dim) * std::log(double(s.original_max_positions) / (rotations * 2 * std::numbers::pi))) /
           (2 * std::log(s.theta));
  };
  double low = correction(s.beta_fast), high = correction(s.beta_slow);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, double(s.dim - 1));
  if (low == high) high += 0.001;
  const Tensor position = at::pow(s.theta, exponents(s.dim));
  const Tensor extrapolated = position.reciprocal(), interpolated = (position * s.factor).reciprocal();
  const Tensor ramp = at::clamp((at::arange(s.dim / 2, at::TensorOptions().dtype(fp32)) - low) / (high - low), 0, 1);
  const Tensor share = at::rsub(ramp, 1) * s.extrapolation_factor;
  return {interpolated * at::rsub(share, 1) + extrapolated * share, attention};
}

Tensor llama3(const RopeSpec& s) {
  const Tensor inverse = plain_inverse(s.theta, s.dim);
  const double context = double(s.original_max_positions);
  const double low_wave = context / s.low_freq_factor, high_wave = context / s.high_freq_factor;
  const Tensor wave = inverse.reciprocal() * (2 * std::numbers::pi);
  const Tensor scaled = at::where(wave > low_wave, inverse / s.factor, inverse);
  const Tensor smooth = (wave.reciprocal() * context - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  const Tensor smoothed = at::rsub(smooth, 1) * scaled / s.factor + smooth * scaled;
  return at::where((wave < high_wave).logical_not().logical_and((wave > low_wave).logical_not()), smoothed, scaled);
}

Frequencies longrope(const RopeSpec& s, int64_t length) {
  double attention = 1.0;
  if (s.attention_factor)
    attention = *s.attention_factor;
  else if (s.factor > 1.0)
    attention = std::sqrt(1 + std::log(s.factor) / std::log(double(s.original_max_positions)));
  const auto& own_scale = length > s.original_max_positions ? s.long_scale : s.short_scale;
  if (own_scale) attention = *own_scale;
  const auto& factors = length > s.original_max_positions ? s.long_factor : s.short_factor;
  const Tensor extension = at::tensor(at::ArrayRef<double>(factors), at::TensorOptions().dtype(fp32));
  return {(extension * at::pow(s.theta, exponents(s.dim))).reciprocal(), attention};
}

void turn_by_kernel(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved, bool back,
                    const Tensor& to) {
  const int64_t half = cos.size(-1);
  const Tensor in = x.numel() == 0 || x.stride(-1) == 1 ? x : x.contiguous();
  kernels::rotate(tensor::executor(), tensor::heads_of(in), tensor::mutable_heads_of(to), x.size(0), x.size(1),
                  x.size(2), half, cos.const_data_ptr<float>(), sin.const_data_ptr<float>(), half, interleaved, back);
}

// A dimension with an angle of its own and no partner: 1, which `angles` says not to round up to a pair. In its table,
// cos is its factor and sin is 0.
bool alone(const RopeSpec& spec) { return spec.dim == 1 && spec.angles == 1; }

Tensor scale_first(const Tensor& x, const Tensor& by) {
  Tensor out = x.clone();
  const Tensor first = out.select(-1, 0);
  first.copy_(first.to(fp32) * by);
  return out;
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved, bool back) {
  if (sin.size(-1) < cos.size(-1)) return scale_first(x, cos);
  const int64_t half = cos.size(-1), dim = 2 * half;
  check(dim <= x.size(-1), "rope: ", dim, " dimensions of heads of ", x.size(-1));
  if (tensor::kernels_serve(x, cos)) {
    const Tensor out = at::empty(x.sizes(), x.options());
    turn_by_kernel(x, cos, sin, interleaved, back, out);
    return out;
  }
  const Tensor c = cos.unsqueeze(1), s = back ? sin.neg().unsqueeze(1) : sin.unsqueeze(1);
  const Tensor part = x.narrow(-1, 0, dim).to(fp32);
  Tensor out;
  if (interleaved) {
    const Tensor pairs = part.unflatten(-1, {half, 2});
    const Tensor a = pairs.select(-1, 0), b = pairs.select(-1, 1);
    out = at::stack({a * c - b * s, b * c + a * s}, -1).flatten(-2);
  } else {
    const Tensor a = part.narrow(-1, 0, half), b = part.narrow(-1, half, half);
    out = at::cat({a * c - b * s, b * c + a * s}, -1);
  }
  out = out.to(x.scalar_type());
  return dim == x.size(-1) ? out : at::cat({out, x.narrow(-1, dim, x.size(-1) - dim)}, -1);
}

struct Rope : torch::autograd::Function<Rope> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cos, const Tensor& sin,
                        bool interleaved) {
    context->save_for_backward({cos, sin});
    context->saved_data["interleaved"] = interleaved;
    return rotate(x, cos, sin, interleaved, false);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {rotate(gradients[0], saved[0], saved[1], context->saved_data["interleaved"].toBool(), true), Tensor(),
            Tensor(), Tensor()};
  }
};

}  // namespace

Tensor mrope_choice(const RopeSpec& s) {
  const auto& section = s.mrope_section;
  check(section.size() == 3 && section[0] + section[1] + section[2] == s.dim / 2, "rope: mrope sections do not fit ",
        s.dim / 2, " pairs");
  Tensor choice = at::zeros({s.dim / 2}, at::TensorOptions().dtype(at::kLong));
  int64_t* const out = choice.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < s.dim / 2; ++i) {
    if (s.mrope_interleaved)
      out[i] = i % 3 != 0 && i < 3 * section[i % 3] ? i % 3 : 0;
    else
      out[i] = i < section[0] ? 0 : i < section[0] + section[1] ? 1 : 2;
  }
  return choice;
}

Frequencies frequencies(const RopeSpec& spec, int64_t length) {
  switch (spec.type) {
    case RopeType::standard:
      return {plain_inverse(spec.theta, spec.dim), 1.0};
    case RopeType::linear:
      return {plain_inverse(spec.theta, spec.dim) / spec.factor, 1.0};
    case RopeType::dynamic:
      return {dynamic(spec, length), 1.0};
    case RopeType::yarn:
      return yarn(spec);
    case RopeType::llama3:
      return {llama3(spec), 1.0};
    case RopeType::longrope:
      return longrope(spec, length);
    case RopeType::proportional: {
      const Tensor inverse = plain_inverse(spec.theta, spec.dim) / spec.factor;
      inverse.slice(0, spec.angles).zero_();
      return {inverse, 1.0};
    }
  }
  throw Bug("unknown rope type");
}

RopeTable rope_table(const RopeSpec& spec, const Tensor& positions, const std::vector<int64_t>& cu_seqlens,
                     const std::vector<int64_t>& lengths) {
  const at::NoGradGuard no_gradient;
  const bool three = positions.dim() == 2;
  check(!three || !spec.mrope_section.empty(), "rope: three positions for a token, and no mrope sections");
  const auto angles = [&](const Tensor& p, const Frequencies& f) {
    const Tensor all = p.to(fp32).unsqueeze(-1) * f.inverse.to(p.device());
    if (!three) return all;
    const Tensor choice = mrope_choice(spec).to(p.device());
    return all.gather(0, choice.view({1, 1, -1}).expand({1, p.size(1), -1})).squeeze(0);
  };
  const bool by_length = spec.type == RopeType::dynamic || spec.type == RopeType::longrope;
  Tensor angle, scales;
  double scale = 1.0;
  if (!by_length) {
    const Frequencies f = frequencies(spec, 0);
    angle = angles(positions, f);
    scale = f.scale;
  } else {
    std::vector<Tensor> parts, scaled;
    for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
      const Tensor p = positions.narrow(-1, cu_seqlens[s], cu_seqlens[s + 1] - cu_seqlens[s]);
      const int64_t reached = p.numel() ? p.max().item<int64_t>() + 1 : 0;
      const Frequencies f = frequencies(spec, s < lengths.size() ? std::max(lengths[s], reached) : reached);
      parts.push_back(angles(p, f));
      scaled.push_back(at::full({p.size(-1), 1}, f.scale, parts.back().options()));
    }
    angle = at::cat(parts);
    scales = at::cat(scaled);
  }
  RopeTable table{angle.cos(), angle.sin(), spec.interleaved};
  if (scales.defined() || scale != 1.0)
    for (const Tensor& t : {table.cos, table.sin}) scales.defined() ? t.mul_(scales) : t.mul_(scale);
  // transformers' classes multiply such a head's query and key by that factor twice: the scores equal those of one
  // multiplication by the square root of two.
  if (alone(spec))
    table = {(table.cos - table.sin) * std::numbers::sqrt2, table.sin.narrow(-1, 0, 0), spec.interleaved};
  return table;
}

Tensor rope(const Tensor& x, const RopeTable& table) {
  check(x.dim() == 3 && x.size(0) == table.cos.size(0), "rope: x is ", x.sizes(), ", the table ", table.cos.sizes());
  if (!wants_gradient(x)) return rotate(x, table.cos, table.sin, table.interleaved, false);
  return Rope::apply(x, table.cos, table.sin, table.interleaved);
}

void rope_into(const Tensor& x, const RopeTable& table, int64_t first, const Tensor& to) {
  const at::NoGradGuard no_gradient;
  check(x.sizes() == to.sizes() && first + x.size(0) <= table.cos.size(0), "rope: x is ", x.sizes(), ", its place ",
        to.sizes(), ", the table ", table.cos.sizes());
  check(2 * table.sin.size(-1) <= x.size(-1), "rope: the table ", table.cos.sizes(), " for heads of ", x.size(-1));
  const Tensor cos = table.cos.slice(0, first, first + x.size(0));
  const Tensor sin = table.sin.slice(0, first, first + x.size(0));
  if (sin.size(-1) == cos.size(-1) && tensor::kernels_serve(x, cos, to) && x.scalar_type() == to.scalar_type() &&
      to.stride(-1) == 1)
    turn_by_kernel(x, cos, sin, table.interleaved, false, to);
  else
    to.copy_(rotate(x, cos, sin, table.interleaved, false));
}

}  // namespace easydel::ops
