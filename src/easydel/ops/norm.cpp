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

// The factor of the normalized values, in fp32.
Tensor scale_of(const Tensor& weight, double offset, at::ScalarType type) {
  const Tensor rounded = weight.to(type).to(at::kFloat);
  return offset == 0.0 ? rounded : rounded + offset;
}

// A contiguous tensor as rows of its last dimension.
kernels::Input flat(const Tensor& x) { return {x.const_data_ptr(), tensor::kernel_dtype(x.scalar_type()), x.size(-1)}; }
kernels::Output flat_output(const Tensor& x) {
  return {x.mutable_data_ptr(), tensor::kernel_dtype(x.scalar_type()), x.size(-1)};
}
kernels::NormSpec kernel_spec(double epsilon, double offset, bool wide) {
  kernels::NormSpec spec;
  spec.eps = float(epsilon);
  spec.weight_offset = float(offset);
  spec.round_before_weight = offset == 0.0 && !wide;
  return spec;
}

// Whether the kernels can process it, with the residual in the same sweep.
template <class... Weights>
bool in_kernels(const Tensor& x, const std::optional<Tensor>& residual, const Weights&... weights) {
  return tensor::kernels_serve(x, weights...) && x.is_contiguous() && (!residual || residual->is_contiguous());
}
// Which arguments after x need a gradient; absent ones have no edge in the graph.
struct Wanted {
  Wanted(AutogradContext* context, bool has_residual, const Tensor& with_weight, const Tensor& with_bias) {
    size_t edge = 1;
    const auto next = [&](bool there) { return there && context->needs_input_grad(edge++); };
    residual = next(has_residual), weight = next(with_weight.defined()), bias = next(with_bias.defined());
    x = residual || context->needs_input_grad(0);
  }
  bool x, residual, weight, bias;
};

variable_list results(const Tensor& y, const std::optional<Tensor>& residual, const Tensor& sum) {
  return residual ? variable_list{y, sum} : variable_list{y};
}

// The norm of x, or of x + residual if there is one; the sum is then a result, too.
struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static variable_list forward(AutogradContext* context, const Tensor& x, const std::optional<Tensor>& residual,
                               const Tensor& weight, double epsilon, double offset, bool wide_scale) {
    const auto save = [&](const Tensor& of, const Tensor& inverse) {
      if (!context) return;
      context->save_for_backward({of, inverse, weight});
      context->set_materialize_grads(false);
      context->saved_data["offset"] = offset;
      context->saved_data["epsilon"] = epsilon;
      context->saved_data["wide"] = wide_scale;
    };
    if (in_kernels(x, residual, weight)) {
      const Tensor y = at::empty(x.sizes(), x.options()), sum = residual ? at::empty(x.sizes(), x.options()) : x;
      const Tensor inverse = at::empty({x.numel() / x.size(-1)}, x.options().dtype(at::kFloat));
      const Tensor own = weight.to(x.scalar_type());
      const auto spec = kernel_spec(epsilon, offset, wide_scale);
      float* const factors = inverse.mutable_data_ptr<float>();
      if (residual)
        kernels::add_rms_norm(tensor::executor(), spec, flat(x), flat(*residual), tensor::input_of(own),
                              inverse.numel(), x.size(-1), flat_output(sum), flat_output(y), factors);
      else
        kernels::rms_norm(tensor::executor(), spec, flat(x), tensor::input_of(own), inverse.numel(), x.size(-1),
                          flat_output(y), factors);
      save(sum, inverse);
      return results(y, residual, sum);
    }
    const Tensor sum = residual ? x + *residual : x, wide = sum.to(at::kFloat);
    const Tensor inverse = (wide.pow(2).mean(-1, true) + epsilon).rsqrt();
    save(sum, inverse);
    const Tensor scale = scale_of(weight, offset, x.scalar_type());
    const bool rounds_first = offset == 0.0 && !wide_scale;
    const Tensor unit = rounds_first ? (wide * inverse).to(x.scalar_type()) : wide * inverse;
    return results((unit * scale).to(x.scalar_type()), residual, sum);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &inverse = saved[1], &weight = saved[2];
    const Tensor dsum = gradients.size() > 1 ? gradients[1] : Tensor();
    const Wanted wanted(context, gradients.size() > 1, weight, {});
    const auto answer = [&](const Tensor& dx, const Tensor& dw) {
      return variable_list{dx, wanted.residual ? dx : Tensor(), dw, Tensor(), Tensor(), Tensor()};
    };
    if (!gradients[0].defined()) return answer(dsum, Tensor());
    const double offset = context->saved_data["offset"].toDouble();
    if (in_kernels(x, std::nullopt, weight)) {
      const Tensor gradient = gradients[0].contiguous(), dx = at::empty(x.sizes(), x.options());
      const Tensor dw = wanted.weight ? at::zeros(weight.sizes(), inverse.options()) : Tensor();
      const Tensor own = weight.to(x.scalar_type());
      const auto spec =
          kernel_spec(context->saved_data["epsilon"].toDouble(), offset, context->saved_data["wide"].toBool());
      if (dsum.defined()) {
        const Tensor of_sum = dsum.contiguous();
        kernels::add_rms_norm_backward(tensor::executor(), spec, flat(gradient), flat(of_sum), flat(x),
                                       tensor::input_of(own), inverse.const_data_ptr<float>(), inverse.numel(),
                                       x.size(-1), flat_output(dx), tensor::mutable_numbers(dw));
      } else {
        kernels::rms_norm_backward(tensor::executor(), spec, flat(gradient), flat(x), tensor::input_of(own),
                                   inverse.const_data_ptr<float>(), inverse.numel(), x.size(-1), flat_output(dx),
                                   tensor::mutable_numbers(dw));
      }
      return answer(dx, dw.defined() ? dw.to(weight.scalar_type()) : dw);
    }
    const Tensor gradient = gradients[0].to(at::kFloat), unit = x.to(at::kFloat) * inverse;
    Tensor dx, dw;
    if (wanted.weight) dw = (gradient * unit).reshape({-1, x.size(-1)}).sum(0).to(weight.scalar_type());
    if (wanted.x) {
      const Tensor inner = gradient * scale_of(weight, offset, x.scalar_type());
      dx = ((inner - unit * (inner * unit).mean(-1, true)) * inverse).to(x.scalar_type());
      if (dsum.defined()) dx = dx + dsum;
    }
    return answer(dx, dw);
  }
};

struct LayerNorm : torch::autograd::Function<LayerNorm> {
  static variable_list forward(AutogradContext* context, const Tensor& x, const std::optional<Tensor>& residual,
                               const std::optional<Tensor>& own_weight, const std::optional<Tensor>& own_bias,
                               double epsilon) {
    const Tensor weight = own_weight.value_or(Tensor()), bias = own_bias.value_or(Tensor());
    if (context) {
      context->set_materialize_grads(false);
      context->saved_data["epsilon"] = epsilon;
    }
    if (in_kernels(x, residual, weight, bias)) {
      const Tensor y = at::empty(x.sizes(), x.options()), sum = residual ? at::empty(x.sizes(), x.options()) : x;
      const Tensor moments = at::empty({x.numel() / x.size(-1), 2}, x.options().dtype(at::kFloat));
      const Tensor w = as(weight, x), b = as(bias, x);
      float* const to = moments.mutable_data_ptr<float>();
      if (residual)
        kernels::add_layer_norm(tensor::executor(), spec_of(epsilon), flat(x), flat(*residual), tensor::input_of(w),
                                tensor::input_of(b), moments.size(0), x.size(-1), flat_output(sum), flat_output(y), to);
      else
        kernels::layer_norm(tensor::executor(), spec_of(epsilon), flat(x), tensor::input_of(w), tensor::input_of(b),
                            moments.size(0), x.size(-1), flat_output(y), to);
      if (context) context->save_for_backward({sum, moments, Tensor(), weight, bias});
      return results(y, residual, sum);
    }
    const Tensor sum = residual ? x + *residual : x;
    const auto [y, mean, inverse] =
        at::native_layer_norm(sum.to(at::kFloat), {x.size(-1)}, wide(weight, x), wide(bias, x), epsilon);
    if (context) context->save_for_backward({sum, mean, inverse, weight, bias});
    return results(y.to(x.scalar_type()), residual, sum);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[3], &bias = saved[4];
    const Tensor dsum = gradients.size() > 1 ? gradients[1] : Tensor();
    const Wanted wanted(context, gradients.size() > 1, weight, bias);
    const auto answer = [&](const Tensor& dx, const Tensor& dw, const Tensor& db) {
      return variable_list{dx, wanted.residual ? dx : Tensor(), dw.defined() ? dw.to(weight.scalar_type()) : dw,
                           db.defined() ? db.to(bias.scalar_type()) : db, Tensor()};
    };
    if (!gradients[0].defined()) return answer(dsum, Tensor(), Tensor());
    if (!saved[2].defined()) {
      const Tensor gradient = gradients[0].contiguous(), own = as(weight, x), dx = at::empty(x.sizes(), x.options());
      const auto total = [&](const Tensor& of, bool want) {
        return want ? at::zeros(of.sizes(), saved[1].options()) : Tensor();
      };
      const Tensor dw = total(weight, wanted.weight), db = total(bias, wanted.bias);
      const auto spec = spec_of(context->saved_data["epsilon"].toDouble());
      const float* const moments = saved[1].const_data_ptr<float>();
      if (dsum.defined()) {
        const Tensor of_sum = dsum.contiguous();
        kernels::add_layer_norm_backward(tensor::executor(), spec, flat(gradient), flat(of_sum), flat(x),
                                         tensor::input_of(own), moments, saved[1].size(0), x.size(-1), flat_output(dx),
                                         tensor::mutable_numbers(dw), tensor::mutable_numbers(db));
      } else {
        kernels::layer_norm_backward(tensor::executor(), spec, flat(gradient), flat(x), tensor::input_of(own), moments,
                                     saved[1].size(0), x.size(-1), flat_output(dx), tensor::mutable_numbers(dw),
                                     tensor::mutable_numbers(db));
      }
      return answer(dx, dw, db);
    }
    auto [dx, dw, db] = at::native_layer_norm_backward(gradients[0].to(at::kFloat).contiguous(), x.to(at::kFloat),
                                                       {x.size(-1)}, saved[1], saved[2], wide(weight, x), wide(bias, x),
                                                       {wanted.x, wanted.weight, wanted.bias});
    if (dx.defined()) dx = dx.to(x.scalar_type());
    if (dx.defined() && dsum.defined()) dx = dx + dsum;
    return answer(dx, dw, db);
  }

 private:
  static kernels::NormSpec spec_of(double epsilon) {
    kernels::NormSpec spec;
    spec.eps = float(epsilon);
    return spec;
  }
  // A weight or bias rounded to x's dtype, as a model of that dtype would store it.
  static Tensor as(const Tensor& weight, const Tensor& x) {
    return weight.defined() ? weight.to(x.scalar_type()).contiguous() : Tensor();
  }
  static std::optional<Tensor> wide(const Tensor& weight, const Tensor& x) {
    if (!weight.defined()) return std::nullopt;
    return weight.to(x.scalar_type()).to(at::kFloat);
  }
};

}  // namespace

namespace {

variable_list rms(const Tensor& x, const std::optional<Tensor>& residual, const Tensor& own_weight, double epsilon,
                  double offset, bool wide) {
  const Tensor weight = own_weight.defined() ? own_weight : at::ones({x.size(-1)}, x.options());
  check(x.size(-1) == weight.size(0), "rms_norm: x is ", x.sizes(), ", the weight ", weight.sizes());
  if (!wants_gradient(x, residual.value_or(Tensor()), weight))
    return RmsNorm::forward(nullptr, x, residual, weight, epsilon, offset, wide);
  return RmsNorm::apply(x, residual, weight, epsilon, offset, wide);
}

variable_list layer(const Tensor& x, const std::optional<Tensor>& residual, const Tensor& weight, const Tensor& bias,
                    double epsilon) {
  if (!wants_gradient(x, residual.value_or(Tensor()), weight, bias))
    return LayerNorm::forward(nullptr, x, residual, argument(weight), argument(bias), epsilon);
  return LayerNorm::apply(x, residual, argument(weight), argument(bias), epsilon);
}

// One sweep requires operands of one shape and dtype.
bool alike(const Tensor& x, const Tensor& residual) {
  return x.scalar_type() == residual.scalar_type() && x.sizes() == residual.sizes();
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, double offset, bool wide) {
  return rms(x, std::nullopt, weight, epsilon, offset, wide)[0];
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  return layer(x, std::nullopt, weight, bias, epsilon)[0];
}

NormOfSum add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double epsilon, double offset,
                       bool wide) {
  if (!alike(x, residual)) {
    const Tensor sum = x + residual;
    return {sum, rms_norm(sum, weight, epsilon, offset, wide)};
  }
  const variable_list all = rms(x, residual, weight, epsilon, offset, wide);
  return {all[1], all[0]};
}

NormOfSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                         double epsilon) {
  if (!alike(x, residual)) {
    const Tensor sum = x + residual;
    return {sum, layer_norm(sum, weight, bias, epsilon)};
  }
  const variable_list all = layer(x, residual, weight, bias, epsilon);
  return {all[1], all[0]};
}

}  // namespace easydel::ops
