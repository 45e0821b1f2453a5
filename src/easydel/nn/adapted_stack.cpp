// Adapters of stacked experts.
#include <ATen/ops/matmul.h>

#include <cmath>
#include <utility>

#include "easydel/nn/adapted_weight.h"
#include "easydel/ops/low_rank.h"

namespace easydel::nn {
namespace {

class AdaptedStack final : public WeightStack {
 public:
  AdaptedStack(std::shared_ptr<WeightStack> base, const ExpertFactors& factors,
               std::shared_ptr<const AdapterSwitch> state)
      : base_(std::move(base)), state_(std::move(state)), scale_(factors.scale) {
    const auto stack = [](Parameter parameter, std::function<Tensor()> part) {
      return dense_stack(std::make_shared<WeightForms>(parameter, std::move(part)), /*grouped=*/true);
    };
    a_ = stack(factors.a, [factors] { return factors.a_of(factors.a.value()); });
    b_ = stack(factors.b, [factors] { return factors.b_of(factors.b.value()); });
  }

  Tensor product(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, Pass& pass) override {
    const Tensor y = base_->product(x, begin, bias, pass);
    if (!pass.stream().adapters || state_->merged) return y;
    // As ops::subtract_scaled takes it: the sign of a positive scale is in the product.
    const Tensor low = a_->product(x, begin, {}, pass);
    const Tensor added = b_->product(scale_ < 0 ? low : -low, begin, {}, pass);
    return ops::subtract_scaled(y, added, std::fabs(scale_));
  }
  Tensor values() const override { return base_->values(); }
  WeightStack* base() override { return base_.get(); }

 private:
  std::shared_ptr<WeightStack> base_, a_, b_;
  std::shared_ptr<const AdapterSwitch> state_;
  double scale_;
};

}  // namespace

Tensor ExpertFactors::a_of(const Tensor& whole) const { return whole.view({experts, -1, whole.size(1)}); }

Tensor ExpertFactors::b_of(const Tensor& whole) const {
  const Tensor own = whole.slice(0, first, first + step * (rows - 1) + 1, step);
  return own.view({rows, -1, experts}).permute({2, 0, 1});
}

std::shared_ptr<WeightStack> adapted_stack(std::shared_ptr<WeightStack> base, const ExpertFactors& factors,
                                           std::shared_ptr<const AdapterSwitch> state) {
  return std::make_shared<AdaptedStack>(std::move(base), factors, std::move(state));
}

Tensor merged_stack(const Tensor& base, const ExpertFactors& factors, const Tensor& a, const Tensor& b) {
  const at::NoGradGuard no_gradient;
  const Tensor left = factors.b_of(b.to(at::kFloat)), right = factors.a_of(a.to(at::kFloat));
  return base.to(at::kFloat).add(at::matmul(left, right), factors.scale);
}

}  // namespace easydel::nn
