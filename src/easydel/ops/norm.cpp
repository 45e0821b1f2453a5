#include "easydel/ops/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/base/error.h"
#include "easydel/kernels/fused.h"
#include "easydel/ops/gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the quotient is multiplied by, in fp32.
Tensor scale_of(const Tensor& weight, double offset, at::ScalarType type) {
  const Tensor rounded = weight.to(type).to(at::kFloat);
  return offset == 0.0 ? rounded : rounded + offset;
}

// A contiguous tensor as rows of its last dimension.
kernels::Input flat(const Tensor& x) { return {x.const_data_ptr(), tensor::number_of(x.scalar_type()), x.size(-1)}; }
kernels::Output flat_output(const Tensor& x) {
  return {x.mutable_data_ptr(), tensor::number_of(x.scalar_type()), x.size(-1)};
}
kernels::NormSpec kernel_spec(double epsilon, double offset, bool wide) {
  kernels::NormSpec spec;
  spec.eps = float(epsilon);
  spec.weight_offset = float(offset);
  spec.round_before_weight = offset == 0.0 && !wide;
  return spec;
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, double epsilon, double offset,
                        bool wide_scale) {
    const auto save = [&](const Tensor& inverse) {
      if (!context) return;
      context->save_for_backward({x, inverse, weight});
      context->saved_data["offset"] = offset;
      context->saved_data["epsilon"] = epsilon;
      context->saved_data["wide"] = wide_scale;
    };
    if (tensor::kernels_serve(x, weight) && x.is_contiguous()) {
      const Tensor y = at::empty(x.sizes(), x.options());
      const Tensor inverse = at::empty({x.numel() / x.size(-1)}, x.options().dtype(at::kFloat));
      kernels::rms_norm(tensor::executor(), kernel_spec(epsilon, offset, wide_scale), flat(x), tensor::input_of(weight.to(x.scalar_type())),
                        inverse.numel(), x.size(-1), flat_output(y), inverse.mutable_data_ptr<float>());
      save(inverse);
      return y;
    }
    const Tensor wide = x.to(at::kFloat);
    const Tensor inverse = (wide.pow(2).mean(-1, true) + epsilon).rsqrt();
    save(inverse);
    const Tensor scale = scale_of(weight, offset, x.scalar_type());
    if (offset == 0.0 && !wide_scale) return ((wide * inverse).to(x.scalar_type()) * scale).to(x.scalar_type());
    return (wide * inverse * scale).to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &inverse = saved[1], &weight = saved[2];
    const double offset = context->saved_data["offset"].toDouble();
    if (tensor::kernels_serve(x, weight) && x.is_contiguous()) {
      const Tensor gradient = gradients[0].contiguous(), dx = at::empty(x.sizes(), x.options());
      const Tensor dw = context->needs_input_grad(1) ? at::zeros(weight.sizes(), inverse.options()) : Tensor();
      kernels::rms_norm_backward(tensor::executor(), kernel_spec(context->saved_data["epsilon"].toDouble(), offset, context->saved_data["wide"].toBool()),
                                 flat(gradient), flat(x), tensor::input_of(weight.to(x.scalar_type())),
                                 inverse.const_data_ptr<float>(), inverse.numel(), x.size(-1), flat_output(dx),
                                 dw.defined() ? dw.mutable_data_ptr<float>() : nullptr);
      return {dx, dw.defined() ? dw.to(weight.scalar_type()) : dw, Tensor(), Tensor(), Tensor()};
    }
    const Tensor gradient = gradients[0].to(at::kFloat), unit = x.to(at::kFloat) * inverse;
    Tensor dx, dw;
    if (context->needs_input_grad(1))
      dw = (gradient * unit).reshape({-1, x.size(-1)}).sum(0).to(weight.scalar_type());
    if (context->needs_input_grad(0)) {
      const Tensor inner = gradient * scale_of(weight, offset, x.scalar_type());
      dx = ((inner - unit * (inner * unit).mean(-1, true)) * inverse).to(x.scalar_type());
    }
    return {dx, dw, Tensor(), Tensor(), Tensor()};
  }
};

struct LayerNorm : torch::autograd::Function<LayerNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const std::optional<Tensor>& own_weight,
                        const std::optional<Tensor>& own_bias, double epsilon) {
    const Tensor weight = own_weight.value_or(Tensor()), bias = own_bias.value_or(Tensor());
    if (tensor::kernels_serve(x, weight, bias) && x.is_contiguous()) {
      const Tensor y = at::empty(x.sizes(), x.options());
      const Tensor moments = at::empty({x.numel() / x.size(-1), 2}, x.options().dtype(at::kFloat));
      const Tensor w = as(weight, x), b = as(bias, x);
      kernels::layer_norm(tensor::executor(), spec_of(epsilon), flat(x), tensor::input_of(w), tensor::input_of(b),
                          moments.size(0), x.size(-1), flat_output(y), moments.mutable_data_ptr<float>());
      if (context) {
        context->save_for_backward({x, moments, Tensor(), weight, bias});
        context->saved_data["epsilon"] = epsilon;
      }
      return y;
    }
    const auto [y, mean, inverse] = at::native_layer_norm(x.to(at::kFloat), {x.size(-1)}, wide(weight, x), wide(bias, x), epsilon);
    if (context) context->save_for_backward({x, mean, inverse, weight, bias});
    return y.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[3], &bias = saved[4];
    if (!saved[2].defined()) {
      const Tensor gradient = gradients[0].contiguous(), own = as(weight, x), dx = at::empty(x.sizes(), x.options());
      const auto sum = [&](const Tensor& of, size_t place) {
        return of.defined() && context->needs_input_grad(place) ? at::zeros(of.sizes(), saved[1].options()) : Tensor();
      };
      const auto numbers = [](const Tensor& t) { return t.defined() ? t.mutable_data_ptr<float>() : nullptr; };
      const Tensor dw = sum(weight, 1), db = sum(bias, 2);
      kernels::layer_norm_backward(tensor::executor(), spec_of(context->saved_data["epsilon"].toDouble()), flat(gradient),
                                   flat(x), tensor::input_of(own), saved[1].const_data_ptr<float>(), saved[1].size(0),
                                   x.size(-1), flat_output(dx), numbers(dw), numbers(db));
      return {dx, dw.defined() ? dw.to(weight.scalar_type()) : dw, db.defined() ? db.to(bias.scalar_type()) : db, Tensor()};
    }
    auto [dx, dw, db] = at::native_layer_norm_backward(
        gradients[0].to(at::kFloat).contiguous(), x.to(at::kFloat), {x.size(-1)}, saved[1], saved[2], wide(weight, x), wide(bias, x),
        {context->needs_input_grad(0), weight.defined() && context->needs_input_grad(1),
         bias.defined() && context->needs_input_grad(2)});
    if (dx.defined()) dx = dx.to(x.scalar_type());
    if (dw.defined()) dw = dw.to(weight.scalar_type());
    if (db.defined()) db = db.to(bias.scalar_type());
    return {dx, dw, db, Tensor()};
  }

 private:
  static kernels::NormSpec spec_of(double epsilon) {
    kernels::NormSpec spec;
    spec.eps = float(epsilon);
    return spec;
  }
  // A weight or bias rounded as a model of x's number type would hold it.
  static Tensor as(const Tensor& weight, const Tensor& x) {
    return weight.defined() ? weight.to(x.scalar_type()).contiguous() : Tensor();
  }
  static std::optional<Tensor> wide(const Tensor& weight, const Tensor& x) {
    if (!weight.defined()) return std::nullopt;
    return weight.to(x.scalar_type()).to(at::kFloat);
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& own_weight, double epsilon, double offset, bool wide) {
  const Tensor weight = own_weight.defined() ? own_weight : at::ones({x.size(-1)}, x.options());
  check(x.size(-1) == weight.size(0), "rms_norm: x is ", x.sizes(), ", the weight ", weight.sizes());
  if (!wants_gradient(x, weight)) return RmsNorm::forward(nullptr, x, weight, epsilon, offset, wide);
  return RmsNorm::apply(x, weight, epsilon, offset, wide);
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  if (!wants_gradient(x, weight, bias)) return LayerNorm::forward(nullptr, x, argument(weight), argument(bias), epsilon);
  return LayerNorm::apply(x, argument(weight), argument(bias), epsilon);
}

}  // namespace easydel::ops
