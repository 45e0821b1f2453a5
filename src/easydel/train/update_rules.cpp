#include "easydel/train/update_rules.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

namespace easydel::train {
namespace {

Tensor& state(const Update& u, const char* name) { return u.states.find(name)->second; }
Tensor decayed(const Update& u) { return u.decay != 0 ? u.gradient.add(u.value, u.decay) : u.gradient; }

class AdamW final : public UpdateRule {
 public:
  explicit AdamW(const AdamWOptions& options) : o_(options) {}
  OptimizerStates start(const Tensor& value) const override {
    OptimizerStates out = {{"mean", at::zeros_like(value)}, {"square", at::zeros_like(value)}};
    if (o_.amsgrad) out.emplace("most", at::zeros_like(value));
    return out;
  }
  void update(const Update& u) const override {
    const Tensor count = at::full({}, double(u.step), u.value.options());
    std::vector<Tensor> value = {u.value}, gradient = {decayed_or_plain(u)}, mean = {state(u, "mean")}, square = {state(u, "square")}, most;
    if (o_.amsgrad) most = {state(u, "most")};
    at::_fused_adamw_(value, gradient, mean, square, most, {count}, u.rate, o_.b1, o_.b2, o_.coupled ? 0.0 : u.decay, o_.eps,
                      o_.amsgrad, false);
  }

 private:
  Tensor decayed_or_plain(const Update& u) const { return o_.coupled ? decayed(u) : u.gradient; }
  AdamWOptions o_;
};

double root_mean_square(const Tensor& t) { return at::linalg_vector_norm(t).item<double>() / std::sqrt(double(t.numel())); }

class Adafactor final : public UpdateRule {
 public:
  explicit Adafactor(const AdafactorOptions& options) : o_(options) {}
  bool whole() const override { return true; }
  OptimizerStates start(const Tensor& value) const override {
    OptimizerStates out;
    if (value.dim() >= 2) {
      std::vector<int64_t> column = value.sizes().vec();
      column.erase(column.end() - 2);
      out.emplace("row", at::zeros(value.sizes().slice(0, size_t(value.dim()) - 1), value.options()));
      out.emplace("column", at::zeros(column, value.options()));
    } else {
      out.emplace("square", at::zeros_like(value));
    }
    if (o_.b1 > 0) out.emplace("mean", at::zeros_like(value));
    return out;
  }
  void update(const Update& u) const override {
    const double step = double(u.step), kept = 1 - std::pow(step, o_.decay_rate);
    double rate = o_.relative_step ? std::min(1e-2, 1 / std::sqrt(step)) : u.rate;
    if (o_.scale_parameter) rate *= std::max(o_.least_scale, root_mean_square(u.value));
    const Tensor squares = u.gradient.square().add(o_.eps);
    Tensor change;
    if (u.value.dim() >= 2) {
      Tensor &row = state(u, "row"), &column = state(u, "column");
      row.mul_(kept).add_(squares.mean(-1), 1 - kept);
      column.mul_(kept).add_(squares.mean(-2), 1 - kept);
      change = (row / row.mean(-1, true)).rsqrt_().unsqueeze(-1) * column.unsqueeze(-2).rsqrt();
    } else {
      Tensor& square = state(u, "square");
      square.mul_(kept).add_(squares, 1 - kept);
      change = square.rsqrt();
    }
    change.mul_(u.gradient);
    change.div_(std::max(1.0, root_mean_square(change) / o_.clip)).mul_(rate);
    if (o_.b1 > 0) change = state(u, "mean").mul_(o_.b1).add_(change, 1 - o_.b1);
    if (u.decay != 0) u.value.add_(u.value, -u.decay * rate);
    u.value.sub_(change);
  }

 private:
  AdafactorOptions o_;
};

class Lion final : public UpdateRule {
 public:
  Lion(double b1, double b2) : b1_(b1), b2_(b2) {}
  OptimizerStates start(const Tensor& value) const override { return {{"mean", at::zeros_like(value)}}; }
  void update(const Update& u) const override {
    Tensor& mean = state(u, "mean");
    const Tensor way = mean.mul(b1_).add_(u.gradient, 1 - b1_).sign_();
    u.value.mul_(1 - u.rate * u.decay).add_(way, -u.rate);
    mean.mul_(b2_).add_(u.gradient, 1 - b2_);
  }

 private:
  double b1_, b2_;
};

class Muon final : public UpdateRule {
 public:
  explicit Muon(const MuonOptions& options) : o_(options) {}
  bool whole() const override { return true; }
  OptimizerStates start(const Tensor& value) const override { return {{"momentum", at::zeros_like(value)}}; }
  void update(const Update& u) const override {
    Tensor& momentum = state(u, "momentum");
    momentum.lerp_(u.gradient, 1 - o_.momentum);
    const Tensor way = orthogonal(o_.nesterov ? u.gradient.lerp(momentum, o_.momentum) : momentum);
    const double rows = double(u.value.size(0)), columns = double(u.value.size(1));
    const double factor = o_.match_rms_adamw ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
    u.value.mul_(1 - u.rate * u.decay).add_(way, -u.rate * factor);
  }

 private:
  Tensor orthogonal(const Tensor& matrix) const {
    const bool tall = matrix.size(0) > matrix.size(1);
    Tensor x = matrix.to(at::kBFloat16);
    if (tall) x = x.t();
    x = x.div(at::linalg_vector_norm(x).clamp_min(o_.eps));
    for (int i = 0; i < 5; ++i) {
      const Tensor gram = at::mm(x, x.t());
      x = at::addmm(x, at::addmm(gram, gram, gram, -4.7750, 2.0315), x, 3.4445);
    }
    return tall ? x.t() : x;
  }
  MuonOptions o_;
};

class Rmsprop final : public UpdateRule {
 public:
  explicit Rmsprop(const RmspropOptions& options) : o_(options) {}
  OptimizerStates start(const Tensor& value) const override {
    OptimizerStates out = {{"square", at::zeros_like(value)}};
    if (o_.momentum > 0) out.emplace("momentum", at::zeros_like(value));
    if (o_.centered) out.emplace("mean", at::zeros_like(value));
    return out;
  }
  void update(const Update& u) const override {
    const Tensor gradient = decayed(u);
    Tensor& square = state(u, "square");
    square.mul_(o_.alpha).addcmul_(gradient, gradient, 1 - o_.alpha);
    Tensor root;
    if (o_.centered) {
      Tensor& mean = state(u, "mean");
      mean.lerp_(gradient, 1 - o_.alpha);
      root = square.addcmul(mean, mean, -1).sqrt_();
    } else {
      root = square.sqrt();
    }
    root.add_(o_.eps);
    if (o_.momentum > 0)
      u.value.add_(state(u, "momentum").mul_(o_.momentum).addcdiv_(gradient, root), -u.rate);
    else
      u.value.addcdiv_(gradient, root, -u.rate);
  }

 private:
  RmspropOptions o_;
};

class Sgd final : public UpdateRule {
 public:
  explicit Sgd(const SgdOptions& options) : o_(options) {}
  OptimizerStates start(const Tensor& value) const override {
    if (o_.momentum == 0) return {};
    return {{"momentum", at::zeros_like(value)}};
  }
  void update(const Update& u) const override {
    Tensor gradient = decayed(u);
    if (o_.momentum != 0) {
      Tensor& momentum = state(u, "momentum");
      momentum.mul_(o_.momentum).add_(gradient, u.step == 1 ? 1.0 : 1 - o_.dampening);
      gradient = o_.nesterov ? gradient.add(momentum, o_.momentum) : momentum;
    }
    u.value.add_(gradient, -u.rate);
  }

 private:
  SgdOptions o_;
};

class Adagrad final : public UpdateRule {
 public:
  explicit Adagrad(double eps) : eps_(eps) {}
  OptimizerStates start(const Tensor& value) const override { return {{"square", at::zeros_like(value)}}; }
  void update(const Update& u) const override {
    const Tensor gradient = decayed(u);
    Tensor& square = state(u, "square");
    square.addcmul_(gradient, gradient);
    u.value.addcdiv_(gradient, square.sqrt().add_(eps_), -u.rate);
  }

 private:
  double eps_;
};

}  // namespace

std::unique_ptr<UpdateRule> adamw(const AdamWOptions& options) { return std::make_unique<AdamW>(options); }
std::unique_ptr<UpdateRule> adafactor(const AdafactorOptions& options) { return std::make_unique<Adafactor>(options); }
std::unique_ptr<UpdateRule> lion(double b1, double b2) { return std::make_unique<Lion>(b1, b2); }
std::unique_ptr<UpdateRule> muon(const MuonOptions& options) { return std::make_unique<Muon>(options); }
std::unique_ptr<UpdateRule> rmsprop(const RmspropOptions& options) { return std::make_unique<Rmsprop>(options); }
std::unique_ptr<UpdateRule> sgd(const SgdOptions& options) { return std::make_unique<Sgd>(options); }
std::unique_ptr<UpdateRule> adagrad(double eps) { return std::make_unique<Adagrad>(eps); }

}  // namespace easydel::train
