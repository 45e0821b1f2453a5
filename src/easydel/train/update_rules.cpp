#include "easydel/train/update_rules.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "easydel/kernels/fused.h"
#include "easydel/tensor/kernels.h"

namespace easydel::train {

Tensor& Update::state(std::string_view name) const { return states.find(name)->second; }
Tensor Update::coupled_gradient() const { return decay != 0 ? gradient.add(value, decay) : gradient; }
double root_mean_square(const Tensor& t) {
  return at::linalg_vector_norm(t).item<double>() / std::sqrt(double(t.numel()));
}

namespace {

class AdamW final : public UpdateRule {
 public:
  explicit AdamW(const AdamWOptions& options) : o_(options) {}
  OptimizerStates start(const Tensor& value) const override {
    OptimizerStates out = {{"mean", at::zeros_like(value)}, {"square", at::zeros_like(value)}};
    if (o_.amsgrad) out.emplace("most", at::zeros_like(value));
    return out;
  }
  bool copies() const override { return true; }
  bool scales() const override { return true; }
  void update(const Update& u) const override {
    // The kernel scales the gradient as it reads it; the other rules read a scaled one.
    const bool by_kernel = kernel_serves(u), scaled = !by_kernel || o_.coupled;
    if (scaled && u.scale != 1) u.gradient.mul_(u.scale);
    const Tensor gradient = o_.coupled ? u.coupled_gradient() : u.gradient, &mean = u.state("mean"),
                 &square = u.state("square");
    if (!by_kernel) return by_torch(u, gradient);
    kernels::adamw(tensor::executor(), spec(u, scaled), u.value.numel(), u.value.mutable_data_ptr<float>(),
                   gradient.const_data_ptr(), tensor::kernel_dtype(gradient.scalar_type()),
                   mean.mutable_data_ptr<float>(), square.mutable_data_ptr<float>(), copy_of(u));
  }
  Part part_of(const Update& u) const override {
    if (!kernel_serves(u) || o_.coupled) return {};
    return [step = kernels::AdamWStep(spec(u, false)), value = u.value.mutable_data_ptr<float>(),
            gradient = static_cast<const char*>(u.gradient.const_data_ptr()),
            dtype = tensor::kernel_dtype(u.gradient.scalar_type()),
            copy = copy_of(u)](int64_t first, int64_t count, std::span<float* const> states) {
      kernels::adamw(step, count, value + first, gradient + first * kernels::bytes_of(dtype), dtype, states[0],
                     states[1], copy ? copy + first : nullptr);
    };
  }

 private:
  bool kernel_serves(const Update& u) const {
    const auto served = [](const Tensor& t) { return tensor::kernels_serve(t) && t.is_contiguous(); };
    const bool short_copy = !u.copy.defined() || (served(u.copy) && u.copy.scalar_type() == at::kBFloat16);
    return !o_.amsgrad && served(u.value) && u.value.scalar_type() == at::kFloat && served(u.gradient) && short_copy;
  }
  kernels::AdamW spec(const Update& u, bool scaled) const {
    return {u.rate, o_.b1, o_.b2, o_.eps, o_.coupled ? 0.0 : u.decay, u.step, scaled ? 1.0f : float(u.scale)};
  }
  static kernels::bf16* copy_of(const Update& u) {
    return u.copy.defined() ? static_cast<kernels::bf16*>(u.copy.mutable_data_ptr()) : nullptr;
  }
  void by_torch(const Update& u, const Tensor& of) const {
    const Tensor count = at::full({}, double(u.step), u.value.options());
    std::vector<Tensor> value = {u.value}, gradient = {of}, mean = {u.state("mean")}, square = {u.state("square")},
                        most;
    if (o_.amsgrad) most = {u.state("most")};
    at::_fused_adamw_(value, gradient, mean, square, most, {count}, u.rate, o_.b1, o_.b2, o_.coupled ? 0.0 : u.decay,
                      o_.eps, o_.amsgrad, false);
    if (u.copy.defined()) u.copy.copy_(u.value);
  }

  AdamWOptions o_;
};

class Mars final : public UpdateRule {
 public:
  explicit Mars(const MarsOptions& options) : o_(options) {}
  bool whole() const override { return o_.clip > 0; }
  OptimizerStates start(const Tensor& value) const override {
    return {{"mean", at::zeros_like(value)}, {"square", at::zeros_like(value)}, {"last", at::zeros_like(value)}};
  }
  void update(const Update& u) const override {
    Tensor &mean = u.state("mean"), &square = u.state("square"), &last = u.state("last");
    Tensor corrected = u.gradient.add(u.gradient - last, o_.gamma * o_.b1 / (1 - o_.b1));
    if (const double norm = o_.clip > 0 ? at::linalg_vector_norm(corrected).item<double>() : 0; norm > o_.clip)
      corrected.mul_(o_.clip / norm);
    last.copy_(u.gradient);
    mean.mul_(o_.b1).add_(corrected, 1 - o_.b1);
    square.mul_(o_.b2).addcmul_(corrected, corrected, 1 - o_.b2);
    const double step = double(u.step), left1 = 1 - std::pow(o_.b1, step), left2 = 1 - std::pow(o_.b2, step);
    u.value.mul_(1 - u.rate * u.decay)
        .addcdiv_(mean, square.sqrt().div_(std::sqrt(left2)).add_(o_.eps), -u.rate / left1);
  }

 private:
  MarsOptions o_;
};

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
    double rate = o_.relative_step ? std::min(o_.warmup ? 1e-6 * step : 1e-2, 1 / std::sqrt(step)) : u.rate;
    if (o_.scale_parameter) rate *= std::max(o_.min_scale, root_mean_square(u.value));
    const Tensor squares = u.gradient.square().add(o_.eps);
    Tensor change;
    if (u.value.dim() >= 2) {
      Tensor &row = u.state("row"), &column = u.state("column");
      row.mul_(kept).add_(squares.mean(-1), 1 - kept);
      column.mul_(kept).add_(squares.mean(-2), 1 - kept);
      change = (row / row.mean(-1, true)).rsqrt_().unsqueeze(-1) * column.unsqueeze(-2).rsqrt();
    } else {
      Tensor& square = u.state("square");
      square.mul_(kept).add_(squares, 1 - kept);
      change = square.rsqrt();
    }
    change.mul_(u.gradient);
    change.div_(std::max(1.0, root_mean_square(change) / o_.clip)).mul_(rate);
    if (o_.b1 > 0) change = u.state("mean").mul_(o_.b1).add_(change, 1 - o_.b1);
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
    Tensor& mean = u.state("mean");
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
    Tensor& momentum = u.state("momentum");
    momentum.lerp_(u.gradient, 1 - o_.momentum);
    const Tensor way = orthogonal(o_.nesterov ? u.gradient.lerp(momentum, o_.momentum) : momentum);
    const double rows = double(u.value.size(0)), columns = double(u.value.size(1));
    const double factor =
        o_.match_rms_adamw ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
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
    const Tensor gradient = u.coupled_gradient();
    Tensor& square = u.state("square");
    square.mul_(o_.alpha).addcmul_(gradient, gradient, 1 - o_.alpha);
    Tensor root;
    if (o_.centered) {
      Tensor& mean = u.state("mean");
      mean.lerp_(gradient, 1 - o_.alpha);
      root = square.addcmul(mean, mean, -1).sqrt_();
    } else {
      root = square.sqrt();
    }
    root.add_(o_.eps);
    if (o_.momentum > 0)
      u.value.add_(u.state("momentum").mul_(o_.momentum).addcdiv_(gradient, root), -u.rate);
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
    Tensor gradient = u.coupled_gradient();
    if (o_.momentum != 0) {
      Tensor& momentum = u.state("momentum");
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
  explicit Adagrad(const AdagradOptions& options) : o_(options) {}
  OptimizerStates start(const Tensor& value) const override { return {{"square", at::full_like(value, o_.initial)}}; }
  void update(const Update& u) const override {
    const Tensor gradient = u.coupled_gradient();
    Tensor& square = u.state("square");
    square.addcmul_(gradient, gradient);
    u.value.addcdiv_(gradient, square.sqrt().add_(o_.eps), -u.rate / (1 + double(u.step - 1) * o_.rate_decay));
  }

 private:
  AdagradOptions o_;
};

}  // namespace

std::unique_ptr<UpdateRule> adamw(const AdamWOptions& options) { return std::make_unique<AdamW>(options); }
std::unique_ptr<UpdateRule> adafactor(const AdafactorOptions& options) { return std::make_unique<Adafactor>(options); }
std::unique_ptr<UpdateRule> lion(double b1, double b2) { return std::make_unique<Lion>(b1, b2); }
std::unique_ptr<UpdateRule> muon(const MuonOptions& options) { return std::make_unique<Muon>(options); }
std::unique_ptr<UpdateRule> rmsprop(const RmspropOptions& options) { return std::make_unique<Rmsprop>(options); }
std::unique_ptr<UpdateRule> sgd(const SgdOptions& options) { return std::make_unique<Sgd>(options); }
std::unique_ptr<UpdateRule> adagrad(const AdagradOptions& options) { return std::make_unique<Adagrad>(options); }
std::unique_ptr<UpdateRule> mars(const MarsOptions& options) { return std::make_unique<Mars>(options); }

}  // namespace easydel::train
