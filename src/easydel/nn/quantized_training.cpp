#include "easydel/nn/quantized_training.h"

#include <utility>

#include "easydel/base/error.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/quant/quantize.h"

namespace easydel::nn {
namespace {

class RoundedWeight final : public Weight {
 public:
  RoundedWeight(std::shared_ptr<Weight> base, Parameter parameter, quant::Format format, at::ScalarType saved,
                std::string where)
      : base_(std::move(base)),
        parameter_(parameter),
        format_(std::move(format)),
        saved_(saved),
        where_(std::move(where)) {}

  Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, Pass& pass) override {
    refresh();
    return pass.make(name, [&](const Tensor& given) {
      // The backward is that of a plain product: x gets its gradient through the values of the codes, and the weight as
      // if it had not been rounded.
      return ops::product(x, straight_through(), bias, given.defined() ? given : by_codes(x, bias));
    });
  }
  std::vector<ops::Factors> factors(const Tensor& x, Pass&) override {
    refresh();
    return {{x, straight_through()}};
  }
  Tensor lookup(const Tensor& indices, int64_t padding, Pass& pass) override {
    return base_->lookup(indices, padding, pass);
  }
  std::shared_ptr<WeightStack> by_head(const HeadRows&) override {
    refuse(where_, "multi-head latent attention is not built yet (" + layer_name(parameter_.entry()) + ")",
           "leave it out, and quantize the trained model");
  }
  Tensor values() const override { return base_->values(); }

 private:
  Tensor by_codes(const Tensor& x, const Tensor& bias) const {
    const at::NoGradGuard no_gradient;
    return ops::product(x, codes_, bias);
  }
  ops::Matrix straight_through() const { return {parameter_.value(), values_, nullptr}; }

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
    codes_ = quant::coded(values.to(entry.compute), format_, entry.compute);
    values_ = ops::decoded(codes_, entry.compute);
    version_ = entry.version;
  }

  std::shared_ptr<Weight> base_;
  Parameter parameter_;
  quant::Format format_;
  at::ScalarType saved_;
  std::string where_;
  ops::Matrix codes_;
  Tensor values_;  // decoded
  uint64_t version_ = 0;
};

}  // namespace

std::shared_ptr<Weight> QuantizedTraining::linear(const Scope&, Entry& entry, std::shared_ptr<Weight> weight,
                                                  bool shared) {
  if (entry.head || shared || !entry.shard.defined()) return weight;
  if (!entry.shard.is_cpu()) refuse(where_, "training codes on a GPU is not built yet", "set loader.device to cpu");
  return std::make_shared<RoundedWeight>(std::move(weight), Parameter(&entry), format_, saved_, where_);
}

}  // namespace easydel::nn
