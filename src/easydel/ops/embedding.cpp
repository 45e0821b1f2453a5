#include "easydel/ops/embedding.h"

#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/base/error.h"
#include "easydel/ops/gradient.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Embedding : torch::autograd::Function<Embedding> {
  static Tensor forward(AutogradContext* context, const Tensor& table, const Tensor& indices, int64_t type, int64_t padding) {
    context->save_for_backward({indices});
    context->saved_data["rows"] = table.size(0);
    context->saved_data["padding"] = padding;
    context->saved_data["type"] = int64_t(table.scalar_type());
    return table.index_select(0, indices).to(at::ScalarType(type));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Tensor gradient = gradients[0].to(at::kFloat);
    Tensor sum = at::zeros({context->saved_data["rows"].toInt(), gradient.size(1)}, gradient.options());
    sum.index_add_(0, context->get_saved_variables()[0], gradient);
    if (const int64_t padding = context->saved_data["padding"].toInt(); padding >= 0) sum[padding].zero_();
    return {sum.to(at::ScalarType(context->saved_data["type"].toInt())), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& indices, at::ScalarType type, int64_t padding) {
  if (indices.numel() > 0) {
    const int64_t least = indices.min().item<int64_t>(), greatest = indices.max().item<int64_t>();
    if (least < 0 || greatest >= table.size(0))
      refuse("tokens", str("id ", least < 0 ? least : greatest, " is outside the table of ", table.size(0), " rows"),
             "use the tokenizer that belongs to the model, and no longer a text than it has positions");
  }
  if (!wants_gradient(table)) return table.index_select(0, indices).to(type);
  return Embedding::apply(table, indices, int64_t(type), padding);
}

}  // namespace easydel::ops
