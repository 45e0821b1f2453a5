#include "easydel/nn/quantized_training.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/unbind.h>

#include <utility>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/quant/quantize.h"

namespace easydel::nn {
namespace {

// The codes of a weight, or of each weight of a stack, as a checkpoint will hold its values now.
class RoundedValues {
 public:
  RoundedValues(Parameter parameter, quant::Format format, at::ScalarType saved)
      : parameter_(parameter), format_(std::move(format)), saved_(saved) {}

  // Once for each version of the weight.
  void refresh() {
    const Entry& entry = parameter_.entry();
    if (values_.defined() && version_ == entry.version) return;
    const c10::InferenceMode kept_for_training(false);
    const at::NoGradGuard no_gradient;
    // As a checkpoint holds the values, and as a model that is loaded from it reads them.
    const at::ScalarType type = saved_ != at::ScalarType::Undefined ? saved_ : entry.source.found_type;
    Tensor values = entry.team->whole(entry.shard.detach(), entry.layout);
    if (type != at::ScalarType::Undefined) values = values.to(type);
    values = values.to(entry.compute);
    const bool stack = values.dim() == 3;
    std::vector<Tensor> decoded;
    codes_.clear();
    for (const Tensor& one : stack ? at::unbind(values, 0) : std::vector<Tensor>{values}) {
      codes_.push_back(quant::coded(one, format_, entry.compute));
      decoded.push_back(ops::decoded(codes_.back(), entry.compute));
    }
    values_ = stack ? at::stack(decoded) : decoded.front();
    version_ = entry.version;
  }

  Parameter parameter() const { return parameter_; }
  const Tensor& values() const { return values_; }  // decoded
  // Of one weight. The backward is that of a plain product: x gets its gradient through the values of the codes, and
  // the weight as if it had not been rounded.
  Tensor product(const Tensor& x, size_t matrix, const ops::Matrix& straight_through, const Tensor& bias,
                 const Tensor& given = {}) const {
    return ops::product(x, straight_through, bias, given.defined() ? given : by_codes(x, matrix, bias));
  }
  // The decoded values in the master's dtype, with the weight's gradient.
  Tensor with_gradient() const {
    const Tensor master = parameter_.value(), values = values_.to(master.scalar_type());
    // Subtracting +0 changes no number, not even -0.
    return at::GradMode::is_enabled() && master.requires_grad() ? values.sub(master.detach().sub(master)) : values;
  }

 private:
  Tensor by_codes(const Tensor& x, size_t matrix, const Tensor& bias) const {
    const at::NoGradGuard no_gradient;
    return ops::product(x, codes_[matrix], bias);
  }

  Parameter parameter_;
  quant::Format format_;
  at::ScalarType saved_;
  std::vector<ops::Matrix> codes_;
  Tensor values_;
  uint64_t version_ = 0;
};

class RoundedWeight final : public Weight {
 public:
  RoundedWeight(std::shared_ptr<Weight> base, std::shared_ptr<RoundedValues> values)
      : base_(std::move(base)), values_(std::move(values)) {}

  Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, Pass& pass) override {
    values_->refresh();
    return pass.make(name,
                     [&](const Tensor& given) { return values_->product(x, 0, straight_through(), bias, given); });
  }
  std::vector<ops::Factors> factors(const Tensor& x, Pass&) override {
    values_->refresh();
    return {{x, straight_through()}};
  }
  Tensor lookup(const Tensor& indices, int64_t padding, Pass& pass) override {
    return base_->lookup(indices, padding, pass);
  }
  std::shared_ptr<WeightStack> by_head(const HeadRows& rows) override {
    return stack_of_heads(values_->parameter(), rows, [values = values_] {
      values->refresh();
      return values->with_gradient();
    });
  }
  Tensor values() const override { return base_->values(); }

 private:
  ops::Matrix straight_through() const { return {values_->parameter().value(), values_->values(), nullptr}; }

  std::shared_ptr<Weight> base_;
  std::shared_ptr<RoundedValues> values_;
};

// One product for each expert that has rows, as those of a stack in codes.
class RoundedStack final : public WeightStack {
 public:
  RoundedStack(std::shared_ptr<WeightStack> base, RoundedValues values)
      : base_(std::move(base)), values_(std::move(values)) {}

  Tensor product(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, Pass&) override {
    values_.refresh();
    const std::vector<Tensor> masters = at::unbind(values_.parameter().value(), 0);
    std::vector<Tensor> parts;
    for (size_t e = 0; e + 1 < begin.size(); ++e)
      if (begin[e] < begin[e + 1])
        parts.push_back(values_.product(x.narrow(0, begin[e], begin[e + 1] - begin[e]), e,
                                        {masters[e], values_.values()[int64_t(e)], nullptr},
                                        bias.defined() ? bias[int64_t(e)] : Tensor()));
    return parts.empty() ? x.new_empty({0, values_.values().size(1)}) : at::cat(parts);
  }
  Tensor values() const override { return base_->values(); }

 private:
  std::shared_ptr<WeightStack> base_;
  RoundedValues values_;
};

}  // namespace

void QuantizedTraining::check_place(const Entry& entry) const {
  if (!entry.shard.is_cpu()) refuse(where_, "training codes on a GPU is not built yet", "set loader.device to cpu");
}

std::shared_ptr<Weight> QuantizedTraining::linear(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight,
                                                  bool shared) {
  if (!pattern_.takes(entry, scope.path(), shared) || !entry.shard.defined()) return weight;
  if (entry.head || shared)
    refuse(where_, "training the output layer in codes is not built yet (" + scope.path() + ")",
           "leave it out of trainer.quantization_pattern");
  check_place(entry);
  return std::make_shared<RoundedWeight>(std::move(weight),
                                         std::make_shared<RoundedValues>(Parameter(&entry), format_, saved_));
}

std::shared_ptr<Weight> QuantizedTraining::embedding(const Scope&, Entry& entry, std::shared_ptr<Weight> weight) {
  if (pattern_.names(entry))
    refuse(where_, "training an embedding in codes is not built yet (" + layer_name(entry) + ")",
           "leave it out of trainer.quantization_pattern");
  return weight;
}

std::shared_ptr<WeightStack> QuantizedTraining::experts(const Scope&, Entry& entry,
                                                        std::shared_ptr<WeightStack> weight) {
  if (!pattern_.names(entry) || !entry.shard.defined()) return weight;
  check_place(entry);
  return std::make_shared<RoundedStack>(std::move(weight), RoundedValues(Parameter(&entry), format_, saved_));
}

}  // namespace easydel::nn
