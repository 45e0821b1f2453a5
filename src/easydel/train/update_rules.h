// Rules by which optimizers turn a gradient into an update of one tensor, in fp32 and in torch's and transformers'
// order of operations. Parameters, learning rates and saving are in train/optimizer.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "easydel/tensor/torch.h"

namespace easydel::train {

using OptimizerStates = std::map<std::string, Tensor, std::less<>>;  // of one tensor, by name

struct Update {
  Tensor& value;           // written in place
  const Tensor& gradient;  // as value
  OptimizerStates& states;
  int64_t step = 1;  // this update's number, from 1
  double rate = 0, decay = 0;
  Tensor copy{};     // also receives the new value, rounded to its dtype; undefined: none
  double scale = 1;  // factor of the gradient

  Tensor& state(std::string_view name) const;
  Tensor coupled_gradient() const;  // with the decay in it, as Adam's and older rules' is
};

double root_mean_square(const Tensor& tensor);

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Whether an element's update depends on others: then a parameter that is cut over ranks is updated as a whole on
  // each.
  virtual bool whole() const { return false; }
  // Whether update() writes Update::copy; other rules are given none.
  virtual bool copies() const { return false; }
  // Whether update() heeds Update::scale; other rules are given scaled gradients.
  virtual bool scales() const { return false; }
  // What is evaluated and saved instead of the value that is trained; undefined: that value.
  virtual Tensor averaged(const Tensor& /*value*/, const OptimizerStates&) const { return {}; }
  // The states before the first update: as the value, or scalars, which are equal on all ranks.
  virtual OptimizerStates start(const Tensor& value) const = 0;
  virtual void update(const Update& update) const = 0;  // gradients are off
  // The same update of `count` elements from `first` on by the calling thread alone, with their states, fp32 in the
  // order of their names. `update` has no states and outlives it. Empty: only update() can.
  using Part = std::function<void(int64_t first, int64_t count, std::span<float* const> states)>;
  virtual Part part_of(const Update& /*update*/) const { return {}; }
};

// arXiv:1711.05101. States mean, square; with amsgrad (arXiv:1904.09237) most. `coupled`: Adam, which adds the decay to
// the gradient.
struct AdamWOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8;
  bool amsgrad = false, coupled = false;
};
std::unique_ptr<UpdateRule> adamw(const AdamWOptions& options);

// transformers.Adafactor (arXiv:1804.04235) as transformers' Trainer asks for it. States row, column, or square of a
// vector; mean with b1.
struct AdafactorOptions {
  double eps = 1e-30, min_scale = 1e-3, clip = 1.0, decay_rate = -0.8;
  double b1 = 0;                                        // 0: no mean
  bool scale_parameter = false, relative_step = false;  // relative_step replaces the learning rate
  bool warmup = false;                                  // the relative step begins small
};
std::unique_ptr<UpdateRule> adafactor(const AdafactorOptions& options);

// arXiv:2411.10438 (MARS-AdamW with the last gradient instead of a second one, as in its authors' program), for every
// parameter. States mean, square, last. The corrected gradient of each tensor is clipped to norm `clip`.
struct MarsOptions {
  double b1 = 0.95, b2 = 0.99, eps = 1e-8, gamma = 0.025, clip = 1.0;
};
std::unique_ptr<UpdateRule> mars(const MarsOptions& options);

// arXiv:2409.11321 as its authors' program has it: Adam in the eigenbases of Shampoo's two (or more) second moments,
// which follow by one power iteration every `frequency` updates; the first update only begins them. Dimensions above
// `max_rows`, and vectors, have no basis. States mean, square, count, and of each dimension gram<d>, basis<d>.
struct SoapOptions {
  double b1 = 0.95, b2 = 0.95, shampoo_b = 0.95, eps = 1e-8;
  int64_t frequency = 10, max_rows = 10000;
};
std::unique_ptr<UpdateRule> soap(const SoapOptions& options);

// EasyDeL's quad and skew (eformer/optimizers/_tx/white_kron.py), in fp32: two factors that follow the momentum of each
// block of a matrix whiten it; dimensions above `max_dense` have a diagonal factor, vectors only one. The update is a
// fifth of the result, with a mean magnitude of at most 1.1. States mean, left, left_bound, right, right_bound.
struct KronOptions {
  double b1 = 0.95, preconditioner_rate = 0.7;
  int64_t block = 256, max_dense = 16384;
  bool skew = false;  // a factor is rotated to be symmetric, instead of averaged with its transpose (quad)
};
std::unique_ptr<UpdateRule> kron(const KronOptions& options);

// arXiv:2302.06675. State mean.
std::unique_ptr<UpdateRule> lion(double b1 = 0.9, double b2 = 0.99);

// torch.optim.Muon, for matrices: the momentum, orthogonalized by five Newton-Schulz steps in bf16. State momentum.
struct MuonOptions {
  double momentum = 0.95, eps = 1e-7;
  bool nesterov = true, match_rms_adamw = false;
};
std::unique_ptr<UpdateRule> muon(const MuonOptions& options);

// torch.optim.RMSprop. States square, and on request momentum and mean. The decay is added to the gradient, as in the
// two below.
struct RmspropOptions {
  double alpha = 0.99, eps = 1e-8, momentum = 0;
  bool centered = false;
};
std::unique_ptr<UpdateRule> rmsprop(const RmspropOptions& options);

// torch.optim.SGD. State momentum, if it is used.
struct SgdOptions {
  double momentum = 0, dampening = 0;
  bool nesterov = false;
};
std::unique_ptr<UpdateRule> sgd(const SgdOptions& options);

// torch.optim.Adagrad. State square, a sum.
struct AdagradOptions {
  double eps = 1e-10, rate_decay = 0, initial = 0;
};
std::unique_ptr<UpdateRule> adagrad(const AdagradOptions& options);

// torch's.
std::unique_ptr<UpdateRule> adadelta(double rho = 0.9, double eps = 1e-6);  // states square, change
struct AdamOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8;
  bool decoupled = false;  // of the decay; otherwise it is added to the gradient
};
std::unique_ptr<UpdateRule> adamax(const AdamOptions& options);  // states mean, most; its decay is never decoupled
std::unique_ptr<UpdateRule> nadam(const AdamOptions& options,
                                  double momentum_decay = 4e-3);  // mean, square; product: a scalar
std::unique_ptr<UpdateRule> radam(const AdamOptions& options);    // states mean, square
struct TorchAdafactorOptions {
  double eps = 1.1920928955078125e-7, min_scale = 1e-3, clip = 1.0, decay_rate = -0.8;
};
std::unique_ptr<UpdateRule> torch_adafactor(
    const TorchAdafactorOptions& options);  // states row, column, or square of a vector

// arXiv:2409.03137 as bitsandbytes has it: AdamW whose numerator has a second, slower mean of gradients. alpha and b3
// rise to their values in so many steps; 0: at once. States mean, slow, square.
struct AdemamixOptions {
  double b1 = 0.9, b2 = 0.999, b3 = 0.9999, alpha = 5.0, eps = 1e-8;
  int64_t alpha_steps = 0, b3_steps = 0;
};
std::unique_ptr<UpdateRule> ademamix(const AdemamixOptions& options);

// arXiv:2405.15682 as its authors' package schedulefree has it. The value that is trained lies between the plain
// iterate, the state z, and the average that is evaluated. Weights of the average: step^r * (highest rate)^power.
// States z, square; weight_sum, rate: scalars.
struct ScheduleFreeOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, r = 0, weight_rate_power = 2;
};
std::unique_ptr<UpdateRule> schedule_free_adamw(const ScheduleFreeOptions& options);

}  // namespace easydel::train
