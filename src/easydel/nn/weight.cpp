#include "easydel/nn/weight.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/unbind.h>

#include "easydel/base/error.h"
#include "easydel/ops/embedding.h"
#include "easydel/ops/quantized_product.h"

namespace easydel::nn {
namespace {

class DenseStack final : public WeightStack {
 public:
  DenseStack(std::shared_ptr<WeightForms> forms, bool grouped) : forms_(std::move(forms)), grouped_(grouped) {}

  Tensor product(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, Pass& pass) override {
    const ops::ExpertMatrices weights = forms_->stack(begin, pass);
    return grouped_ ? ops::grouped_product(x, weights, bias, begin) : one_by_one(x, weights, begin, bias);
  }

 private:
  static Tensor one_by_one(const Tensor& x, const ops::ExpertMatrices& weights, const std::vector<int64_t>& begin,
                           const Tensor& bias) {
    const std::vector<Tensor> masters = at::unbind(weights.master, 0);
    std::vector<Tensor> parts;
    for (size_t e = 0; e + 1 < begin.size(); ++e) {
      if (begin[e] == begin[e + 1]) continue;
      ops::Matrix matrix = weights.of(int64_t(e));
      matrix.master = masters[e];
      parts.push_back(ops::product(x.narrow(0, begin[e], begin[e + 1] - begin[e]), matrix,
                                   bias.defined() ? bias[int64_t(e)] : Tensor()));
    }
    return parts.empty() ? x.new_empty({0, weights.compute.size(1)}) : at::cat(parts);
  }

  std::shared_ptr<WeightForms> forms_;
  bool grouped_;
};

// A stack of heads, whose values come from `whole`.
std::shared_ptr<WeightStack> stack_of_heads(Parameter parameter, const HeadRows& rows, std::function<Tensor()> whole) {
  const auto part = [rows, whole = std::move(whole)] {
    const Tensor values = whole();
    const Tensor by_head = values.view({rows.heads, -1, values.size(1)}).narrow(1, rows.first, rows.rows);
    return rows.transposed ? by_head.transpose(1, 2) : by_head;
  };
  return dense_stack(std::make_shared<WeightForms>(parameter, part), /*grouped=*/true);
}

class DenseWeight final : public Weight {
 public:
  explicit DenseWeight(std::shared_ptr<WeightForms> forms) : forms_(std::move(forms)) {}

  Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, Pass& pass) override {
    return pass.make(name, [&](const Tensor& given) { return ops::product(x, forms_->matrix(pass), bias, given); });
  }
  Tensor gated_product(const Tensor& gate, const Tensor& up, ops::Activation kind, const Tensor& bias,
                       std::string_view name, Pass& pass) override {
    return pass.make(name, [&](const Tensor& given) {
      return ops::gated_product(gate, up, kind, forms_->matrix(pass), bias, given);
    });
  }
  std::vector<ops::Factors> factors(const Tensor& x, Pass& pass) override { return {{x, forms_->matrix(pass)}}; }
  Tensor lookup(const Tensor& indices, int64_t padding, Pass&) override {
    const Parameter& parameter = forms_->parameter();
    return ops::embedding(parameter.value(), indices, parameter.entry().compute, padding);
  }
  std::shared_ptr<WeightStack> by_head(const HeadRows& rows) override {
    const Parameter parameter = forms_->parameter();
    return stack_of_heads(parameter, rows, [parameter] { return parameter.value(); });
  }

 private:
  std::shared_ptr<WeightForms> forms_;
};

class QuantizedWeight final : public Weight {
 public:
  QuantizedWeight(Parameter parameter, std::shared_ptr<const kernels::QuantizedWeight> codes, at::ScalarType type)
      : parameter_(parameter), codes_(std::move(codes)), type_(type) {}

  Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, Pass& pass) override {
    return pass.make(name, [&](const Tensor& given) { return ops::product(x, matrix(), bias, given); });
  }
  std::vector<ops::Factors> factors(const Tensor& x, Pass&) override { return {{x, matrix()}}; }
  Tensor lookup(const Tensor& indices, int64_t padding, Pass&) override {
    return ops::embedding(values(), indices, type_, padding);
  }
  std::shared_ptr<WeightStack> by_head(const HeadRows& rows) override {
    return stack_of_heads(parameter_, rows, [codes = codes_, type = type_] { return ops::dequantized(*codes, type); });
  }
  Tensor values() const override { return ops::dequantized(*codes_, type_); }

 private:
  ops::Matrix matrix() const { return {Tensor(), Tensor(), nullptr, codes_}; }

  Parameter parameter_;
  std::shared_ptr<const kernels::QuantizedWeight> codes_;
  at::ScalarType type_;
};

}  // namespace

Tensor Weight::values() const { throw Bug("weight: its values are its parameter's"); }

std::shared_ptr<Weight> dense_weight(std::shared_ptr<WeightForms> forms) {
  return std::make_shared<DenseWeight>(std::move(forms));
}

std::shared_ptr<WeightStack> dense_stack(std::shared_ptr<WeightForms> forms, bool grouped) {
  return std::make_shared<DenseStack>(std::move(forms), grouped);
}

std::shared_ptr<Weight> quantized_weight(Parameter parameter, std::shared_ptr<const kernels::QuantizedWeight> codes,
                                         at::ScalarType type) {
  return std::make_shared<QuantizedWeight>(parameter, std::move(codes), type);
}

}  // namespace easydel::nn
