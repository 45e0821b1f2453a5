// The autograd nodes of collectives.
#include "easydel/collective/autograd.h"

#include <torch/csrc/autograd/custom_function.h>

namespace easydel::collective {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// A node keeps its group in saved_data, which holds IValues.
struct Held : torch::CustomClassHolder {
  explicit Held(Group g) : group(std::move(g)) {}
  Group group;
};
void hold(AutogradContext* context, const Group& group) {
  context->saved_data["group"] = c10::IValue::make_capsule(c10::make_intrusive<Held>(group));
}
Group held(AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<Held>(context->saved_data["group"].toCapsule())->group;
}

Tensor summed(const Group& group, const Tensor& x) {
  Tensor result = x.clone(at::MemoryFormat::Contiguous);
  group.all_reduce(result);
  return result;
}

struct Enter : Function<Enter> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Group& group) {
    hold(context, group);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {summed(held(context), gradients[0]), Tensor()};
  }
};

struct Leave : Function<Leave> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Group& group) { return summed(group, x); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0], Tensor()}; }
};

struct Gather : Function<Gather> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Group& group, int64_t dimension,
                        GatherGradient gradient, at::ScalarType dtype) {
    hold(context, group);
    context->saved_data["dimension"] = dimension;
    context->saved_data["sum"] = gradient == GatherGradient::sum;
    context->saved_data["dtype"] = int64_t(x.scalar_type());
    return group.all_gather(x.to(dtype), dimension);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    Group group = held(context);
    int64_t dimension = context->saved_data["dimension"].toInt();
    auto dtype = at::ScalarType(context->saved_data["dtype"].toInt());
    Tensor mine = context->saved_data["sum"].toBool() ? group.reduce_scatter(gradients[0].to(dtype), dimension)
                                                      : group.part(gradients[0], dimension).to(dtype).contiguous();
    return {mine, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

struct Scatter : Function<Scatter> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Group& group, int64_t dimension) {
    hold(context, group);
    context->saved_data["dimension"] = dimension;
    return group.part(x, dimension).contiguous();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {held(context).all_gather(gradients[0], context->saved_data["dimension"].toInt()), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor enter(const Group& group, const Tensor& x) { return group.alone() ? x : Enter::apply(x, group); }

Tensor leave(const Group& group, const Tensor& x) { return group.alone() ? x : Leave::apply(x, group); }

Tensor gather(const Group& group, const Tensor& x, int64_t dimension, GatherGradient gradient,
              std::optional<at::ScalarType> dtype) {
  at::ScalarType type = dtype.value_or(x.scalar_type());
  return group.alone() ? x.to(type) : Gather::apply(x, group, dimension, gradient, type);
}

Tensor scatter(const Group& group, const Tensor& x, int64_t dimension) {
  return group.alone() ? x : Scatter::apply(x, group, dimension);
}

}  // namespace easydel::collective
