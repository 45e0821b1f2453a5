// More of torch's optimizers, in its order of operations (torch/optim/*.py). Recorded cases compare them with torch.
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "easydel/train/update_rules.h"

namespace easydel::train {
namespace {

class Adadelta final : public UpdateRule {
 public:
  Adadelta(double rho, double eps) : rho_(rho), eps_(eps) {}
  OptimizerStates start(const Tensor& value) const override {
    return {{"square", at::zeros_like(value)}, {"change", at::zeros_like(value)}};
  }
  void update(const Update& u) const override {
    const Tensor gradient = u.coupled_gradient();
    Tensor &square = u.state("square"), &changes = u.state("change");
    square.mul_(rho_).addcmul_(gradient, gradient, 1 - rho_);
    const Tensor change = changes.add(eps_).sqrt_().div_(square.add(eps_).sqrt_()).mul_(gradient);
    changes.mul_(rho_).addcmul_(change, change, 1 - rho_);
    u.value.add_(change, -u.rate);
  }

 private:
  double rho_, eps_;
};

class Adamax final : public UpdateRule {
 public:
  explicit Adamax(const AdamOptions& options) : o_(options) {}
  OptimizerStates start(const Tensor& value) const override {
    return {{"mean", at::zeros_like(value)}, {"most", at::zeros_like(value)}};
  }
  void update(const Update& u) const override {
    const Tensor gradient = u.coupled_gradient();
    Tensor &mean = u.state("mean"), &most = u.state("most");
    mean.lerp_(gradient, 1 - o_.b1);
    at::maximum_out(most, most.mul(o_.b2), gradient.abs().add_(o_.eps));
    u.value.addcdiv_(mean, most, -u.rate / (1 - std::pow(o_.b1, double(u.step))));
  }

 private:
  AdamOptions o_;
};

// The gradient with weight decay added; if decoupled, the value is decayed instead.
Tensor decayed_gradient(const Update& u, bool decoupled) {
  if (!decoupled) return u.coupled_gradient();
  if (u.decay != 0) u.value.mul_(1 - u.rate * u.decay);
  return u.gradient;
}

void average(const Update& u, const Tensor& gradient, const AdamOptions& o) {
  u.state("mean").lerp_(gradient, 1 - o.b1);
  u.state("square").mul_(o.b2).addcmul_(gradient, gradient, 1 - o.b2);
}

class Nadam final : public UpdateRule {
 public:
  Nadam(const AdamOptions& options, double momentum_decay) : o_(options), momentum_decay_(momentum_decay) {}
  OptimizerStates start(const Tensor& value) const override {
    return {
        {"mean", at::zeros_like(value)}, {"square", at::zeros_like(value)}, {"product", at::ones({}, value.options())}};
  }
  void update(const Update& u) const override {
    const Tensor gradient = decayed_gradient(u, o_.decoupled);
    const double now = momentum_at(u.step), next = momentum_at(u.step + 1);
    const double product = u.state("product").mul_(now).item<double>();
    average(u, gradient, o_);
    const Tensor root = u.state("square").div(1 - std::pow(o_.b2, double(u.step))).sqrt_().add_(o_.eps);
    u.value.addcdiv_(gradient, root, -u.rate * (1 - now) / (1 - product));
    u.value.addcdiv_(u.state("mean"), root, -u.rate * next / (1 - product * next));
  }

 private:
  double momentum_at(int64_t step) const { return o_.b1 * (1 - 0.5 * std::pow(0.96, double(step) * momentum_decay_)); }
  AdamOptions o_;
  double momentum_decay_;
};

class Radam final : public UpdateRule {
 public:
  explicit Radam(const AdamOptions& options) : o_(options) {}
  OptimizerStates start(const Tensor& value) const override {
    return {{"mean", at::zeros_like(value)}, {"square", at::zeros_like(value)}};
  }
  void update(const Update& u) const override {
    const Tensor gradient = decayed_gradient(u, o_.decoupled);
    average(u, gradient, o_);
    const double step = double(u.step), kept = std::pow(o_.b2, step), left = 1 - kept;
    const double most = 2 / (1 - o_.b2) - 1,
                 length = most - 2 * step * kept / left;  // length of the average of squares, in steps
    Tensor change = u.state("mean").div(1 - std::pow(o_.b1, step)).mul_(u.rate);
    if (length > 5) {
      const double rectified = std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
      change.mul_(u.state("square").sqrt().add_(o_.eps).reciprocal_().mul_(std::sqrt(left))).mul_(rectified);
    }
    u.value.sub_(change);
  }

 private:
  AdamOptions o_;
};

class TorchAdafactor final : public UpdateRule {
 public:
  explicit TorchAdafactor(const TorchAdafactorOptions& options) : o_(options) {}
  bool whole() const override { return true; }
  OptimizerStates start(const Tensor& value) const override {
    if (value.dim() < 2) return {{"square", at::zeros_like(value)}};
    std::vector<int64_t> row = value.sizes().vec(), column = row;
    row.back() = 1, column[column.size() - 2] = 1;
    return {{"row", at::zeros(row, value.options())}, {"column", at::zeros(column, value.options())}};
  }
  void update(const Update& u) const override {
    const double step = double(u.step), share = std::pow(step, o_.decay_rate);
    const double rate = std::max(o_.min_scale, root_mean_square(u.value)) * std::min(u.rate, 1 / std::sqrt(step));
    if (u.decay != 0) u.value.mul_(1 - u.rate * u.decay);
    Tensor change;
    if (u.value.dim() >= 2) {
      Tensor &row = u.state("row"), &column = u.state("column");
      const auto mean_square = [&](int64_t dim) {
        return at::linalg_vector_norm(u.gradient, 2, dim, true).square_().div_(double(u.gradient.size(dim)));
      };
      row.lerp_(mean_square(-1), share);
      column.lerp_(mean_square(-2), share);
      change = at::matmul(row, column).div_(row.mean(-2, true).clamp_min_(o_.eps));
    } else {
      change = u.state("square").lerp_(u.gradient.square(), share).clone();
    }
    change.clamp_min_(o_.eps * o_.eps).rsqrt_().mul_(u.gradient);
    u.value.add_(change, -rate / std::max(1.0, root_mean_square(change) / o_.clip));
  }

 private:
  TorchAdafactorOptions o_;
};

}  // namespace

std::unique_ptr<UpdateRule> adadelta(double rho, double eps) { return std::make_unique<Adadelta>(rho, eps); }
std::unique_ptr<UpdateRule> adamax(const AdamOptions& options) { return std::make_unique<Adamax>(options); }
std::unique_ptr<UpdateRule> nadam(const AdamOptions& options, double momentum_decay) {
  return std::make_unique<Nadam>(options, momentum_decay);
}
std::unique_ptr<UpdateRule> radam(const AdamOptions& options) { return std::make_unique<Radam>(options); }
std::unique_ptr<UpdateRule> torch_adafactor(const TorchAdafactorOptions& options) {
  return std::make_unique<TorchAdafactor>(options);
}

}  // namespace easydel::train
