#include "easydel/nn/weight.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/unbind.h>

#include <functional>
#include <optional>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/nn/cut_codes.h"
#include "easydel/nn/made_codes.h"
#include "easydel/ops/embedding.h"
#include "easydel/ops/quantized_product.h"

namespace easydel::nn {
namespace {

// x [rows, in] -> [rows, out]: the rows of each weight that has some, multiplied by it.
Tensor product_of_each(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, int64_t out,
                       const std::function<ops::Matrix(int64_t)>& weight) {
  std::vector<Tensor> parts;
  for (size_t e = 0; e + 1 < begin.size(); ++e)
    if (begin[e] < begin[e + 1])
      parts.push_back(ops::product(x.narrow(0, begin[e], begin[e + 1] - begin[e]), weight(int64_t(e)),
                                   bias.defined() ? bias[int64_t(e)] : Tensor()));
  return parts.empty() ? x.new_empty({0, out}) : at::cat(parts);
}

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
    return product_of_each(x, begin, bias, weights.compute.size(1), [&](int64_t e) {
      ops::Matrix matrix = weights.of(e);
      matrix.master = masters[size_t(e)];
      return matrix;
    });
  }

  std::shared_ptr<WeightForms> forms_;
  bool grouped_;
};

}  // namespace

std::shared_ptr<WeightStack> stack_of_heads(Parameter parameter, const HeadRows& rows, std::function<Tensor()> whole) {
  const auto part = [rows, whole = std::move(whole)] {
    const Tensor values = whole();
    const Tensor by_head = values.view({rows.heads, -1, values.size(1)}).narrow(1, rows.first, rows.rows);
    return rows.transposed ? by_head.transpose(1, 2) : by_head;
  };
  return dense_stack(std::make_shared<WeightForms>(parameter, part), /*grouped=*/true);
}

namespace {

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
  std::optional<AdaptedMatrix> adapted_matrix(const Tensor&, Pass& pass) override { return {{forms_->matrix(pass)}}; }
  std::vector<ops::Factors> factors(const Tensor& x, Pass& pass) override { return {{x, forms_->matrix(pass)}}; }
  Tensor lookup(const Tensor& indices, int64_t padding, Pass&) override {
    const Parameter& parameter = forms_->parameter();
    const Tensor out = ops::embedding(parameter.value(), indices, parameter.entry().compute, padding);
    forms_->looked_up(indices.numel());
    return out;
  }
  std::shared_ptr<WeightStack> by_head(const HeadRows& rows) override {
    const Parameter parameter = forms_->parameter();
    return stack_of_heads(parameter, rows, [parameter] { return parameter.value(); });
  }

 private:
  std::shared_ptr<WeightForms> forms_;
};

Tensor values_of(const ops::Matrix& matrix, at::ScalarType type) {
  return matrix.in_codes() ? ops::decoded(matrix, type) : matrix.compute.to(type);
}

class QuantizedWeight final : public Weight {
 public:
  QuantizedWeight(Parameter parameter, ops::Matrix codes, at::ScalarType type, std::optional<quant::Format> format = {})
      : parameter_(parameter),
        codes_(std::make_shared<Codes>(CutCodes(std::move(codes), *parameter.entry().team))),
        type_(type),
        format_(std::move(format)) {}

  MadeCodes made() const { return format_ && read().in_codes() ? MadeCodes{{read()}, &*format_} : MadeCodes{}; }
  // What is read: the codes, or what was merged into them.
  ops::Matrix read() const { return codes_->merged.empty() ? codes_->own.whole() : codes_->merged.front(); }
  std::vector<ops::Matrix>& merged() { return codes_->merged; }

  Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, Pass& pass) override {
    return pass.make(name, [&](const Tensor& given) { return ops::product(x, read(), bias, given); });
  }
  std::optional<AdaptedMatrix> adapted_matrix(const Tensor&, Pass&) override { return {{read()}}; }
  std::vector<ops::Factors> factors(const Tensor& x, Pass&) override { return {{x, read()}}; }
  Tensor lookup(const Tensor& indices, int64_t padding, Pass&) override {
    const ops::Matrix all = read();
    return all.in_codes() ? ops::decoded_rows(all, indices, type_)
                          : ops::embedding(all.compute, indices, type_, padding);
  }
  std::shared_ptr<WeightStack> by_head(const HeadRows& rows) override {
    return stack_of_heads(parameter_, rows, [codes = *this] { return codes.values(); });
  }
  Tensor values() const override { return values_of(read(), type_); }

 private:
  struct Codes {
    CutCodes own;
    std::vector<ops::Matrix> merged = {};
  };
  Parameter parameter_;
  std::shared_ptr<Codes> codes_;  // shared with what by_head() returned
  at::ScalarType type_;
  std::optional<quant::Format> format_;  // nothing: they are those of a file
};

// One product for each weight that has rows.
class QuantizedStack final : public WeightStack {
 public:
  QuantizedStack(std::vector<ops::Matrix> codes, at::ScalarType type, std::optional<quant::Format> format = {})
      : codes_(std::move(codes)), type_(type), format_(std::move(format)) {}

  MadeCodes made() const { return format_ && merged_.empty() ? MadeCodes{codes_, &*format_} : MadeCodes{}; }

  Tensor product(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, Pass&) override {
    return product_of_each(x, begin, bias, read().front().out(), [&](int64_t e) { return read()[size_t(e)]; });
  }
  Tensor values() const override {
    std::vector<Tensor> all;
    for (const ops::Matrix& one : read()) all.push_back(values_of(one, type_));
    return at::stack(all);
  }
  const std::vector<ops::Matrix>& read() const { return merged_.empty() ? codes_ : merged_; }
  std::vector<ops::Matrix>& merged() { return merged_; }

 private:
  std::vector<ops::Matrix> codes_, merged_;
  at::ScalarType type_;
  std::optional<quant::Format> format_;  // nothing: they are those of a file
};

template <class W>
W& innermost(W& weight) {
  W* inside = &weight;
  while (W* const next = inside->base()) inside = next;
  return *inside;
}

}  // namespace

Tensor WeightStack::values() const { throw Bug("stack: its values are its parameter's"); }

Tensor Weight::values() const { throw Bug("weight: its values are its parameter's"); }

std::shared_ptr<Weight> dense_weight(std::shared_ptr<WeightForms> forms) {
  return std::make_shared<DenseWeight>(std::move(forms));
}

std::shared_ptr<WeightStack> dense_stack(std::shared_ptr<WeightForms> forms, bool grouped) {
  return std::make_shared<DenseStack>(std::move(forms), grouped);
}

std::shared_ptr<Weight> quantized_weight(Parameter parameter, ops::Matrix codes, at::ScalarType type) {
  return std::make_shared<QuantizedWeight>(parameter, std::move(codes), type);
}

std::shared_ptr<Weight> quantized_weight(Parameter parameter, ops::Matrix codes, at::ScalarType type,
                                         const quant::Format& format) {
  return std::make_shared<QuantizedWeight>(parameter, std::move(codes), type, format);
}

MadeCodes made_codes(Weight& weight) {
  const auto* const quantized = dynamic_cast<const QuantizedWeight*>(&innermost(weight));
  return quantized ? quantized->made() : MadeCodes{};
}

MadeCodes made_codes(WeightStack& stack) {
  const auto* const quantized = dynamic_cast<const QuantizedStack*>(&innermost(stack));
  return quantized ? quantized->made() : MadeCodes{};
}

MadeCodes made_codes(const Entry& entry) {
  if (entry.weight) return made_codes(*entry.weight);
  return entry.stack ? made_codes(*entry.stack) : MadeCodes{};
}

namespace {

QuantizedWeight* quantized_in(const Entry& entry) {
  return entry.weight ? dynamic_cast<QuantizedWeight*>(&innermost(*entry.weight)) : nullptr;
}

QuantizedStack& stack_in(const Entry& entry) {
  auto* const found = entry.stack ? dynamic_cast<QuantizedStack*>(&innermost(*entry.stack)) : nullptr;
  check(found != nullptr, "weight: ", entry.path, " is not in codes");
  return *found;
}

}  // namespace

std::vector<ops::Matrix> whole_codes(const Entry& entry) {
  if (QuantizedWeight* const one = quantized_in(entry)) return {one->read()};
  return stack_in(entry).read();
}

std::vector<ops::Matrix> read_instead_of_codes(Entry& entry, std::vector<ops::Matrix> merged) {
  QuantizedWeight* const one = quantized_in(entry);
  std::vector<ops::Matrix> before = std::exchange(one ? one->merged() : stack_in(entry).merged(), std::move(merged));
  entry.written();
  return before;
}

Tensor values_of(const std::vector<ops::Matrix>& codes, const Entry& entry, at::ScalarType type) {
  if (entry.shape.size() == 2) return values_of(codes.front(), type);
  std::vector<Tensor> values;
  for (const ops::Matrix& one : codes) values.push_back(values_of(one, type));
  return at::stack(values);
}

std::shared_ptr<WeightStack> quantized_stack(std::vector<ops::Matrix> codes, at::ScalarType type) {
  return std::make_shared<QuantizedStack>(std::move(codes), type);
}

std::shared_ptr<WeightStack> quantized_stack(std::vector<ops::Matrix> codes, at::ScalarType type,
                                             const quant::Format& format) {
  return std::make_shared<QuantizedStack>(std::move(codes), type, format);
}

}  // namespace easydel::nn
