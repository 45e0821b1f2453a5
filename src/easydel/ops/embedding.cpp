#include "easydel/ops/embedding.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/base/error.h"
#include "easydel/kernels/embedding.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/weight_gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor look_up(const Tensor& table, const Tensor& indices, at::ScalarType type) {
  if (!tensor::kernels_serve(table) || table.stride(-1) != 1 || (type != at::kFloat && type != at::kBFloat16))
    return table.index_select(0, indices).to(type);
  const Tensor own = indices.to(at::kLong).contiguous();
  const Tensor out = at::empty({own.numel(), table.size(1)}, table.options().dtype(type));
  kernels::gather_rows(tensor::executor(), tensor::input_of(table.detach()), own.const_data_ptr<int64_t>(), own.numel(),
                       table.size(1), tensor::output_of(out));
  return out;
}

struct Embedding : torch::autograd::Function<Embedding> {
  static Tensor forward(AutogradContext* context, const Tensor& table, const Tensor& indices, int64_t type,
                        int64_t padding) {
    context->save_for_backward({indices.to(at::kLong).contiguous()});
    context->saved_data["rows"] = table.size(0);
    context->saved_data["padding"] = padding;
    WeightGradient::remember(context, table);
    return look_up(table, indices, at::ScalarType(type));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Tensor indices = context->get_saved_variables()[0];
    Tensor gradient = gradients[0].contiguous();
    if (const int64_t padding = context->saved_data["padding"].toInt(); padding >= 0)
      gradient = gradient.masked_fill(indices.eq(padding).unsqueeze(1), 0);
    const int64_t n = gradient.size(1);
    WeightGradient sum(context, {context->saved_data["rows"].toInt(), n}, gradient.options());
    sum.clear();
    if (tensor::kernels_serve(gradient))
      kernels::add_rows(tensor::executor(), tensor::input_of(gradient), indices.const_data_ptr<int64_t>(),
                        indices.numel(), n, tensor::output_of(sum.sum()));
    else
      sum.sum().index_add_(0, indices, gradient.to(at::kFloat));
    return {sum.answer(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

void check_indices(const Tensor& indices, int64_t rows) {
  if (indices.numel() == 0) return;
  const int64_t least = indices.min().item<int64_t>(), greatest = indices.max().item<int64_t>();
  if (least < 0 || greatest >= rows)
    refuse("tokens", str("id ", least < 0 ? least : greatest, " is outside the table of ", rows, " rows"),
           "use the tokenizer that belongs to the model, and no longer a text than it has positions");
}

Tensor embedding(const Tensor& table, const Tensor& indices, at::ScalarType type, int64_t padding) {
  check_indices(indices, table.size(0));
  if (!wants_gradient(table)) return look_up(table, indices, type);
  return Embedding::apply(table, indices, int64_t(type), padding);
}

}  // namespace easydel::ops
