// Rules by which optimizers turn a gradient into an update of one tensor: torch's and transformers' order of operations,
// fp32. Which parameters there are, rates and saving are train/optimizer.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "easydel/tensor/torch.h"

namespace easydel::train {

using OptimizerStates = std::map<std::string, Tensor, std::less<>>;  // of one tensor, by name

struct Update {
  Tensor& value;           // written in place
  const Tensor& gradient;  // as value
  OptimizerStates& states;
  int64_t step = 1;        // this update's number, from 1
  double rate = 0, decay = 0;
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Whether an element's update depends on others: then a parameter that is cut over ranks is updated as a whole on each.
  virtual bool whole() const { return false; }
  virtual OptimizerStates start(const Tensor& value) const = 0;
  virtual void update(const Update& update) const = 0;  // gradients are off
};

// arXiv:1711.05101. States mean, square; with amsgrad (arXiv:1904.09237) most. `coupled`: Adam, whose decay goes into the
// gradient.
struct AdamWOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8;
  bool amsgrad = false, coupled = false;
};
std::unique_ptr<UpdateRule> adamw(const AdamWOptions& options);

// transformers.Adafactor (arXiv:1804.04235) as transformers' Trainer asks for it. States row, column, or square of a
// vector; mean with b1.
struct AdafactorOptions {
  double eps = 1e-30, least_scale = 1e-3, clip = 1.0, decay_rate = -0.8;
  double b1 = 0;                                         // 0: no mean
  bool scale_parameter = false, relative_step = false;  // the second takes the place of the rate
};
std::unique_ptr<UpdateRule> adafactor(const AdafactorOptions& options);

// arXiv:2302.06675. State mean.
std::unique_ptr<UpdateRule> lion(double b1 = 0.9, double b2 = 0.99);

// torch.optim.Muon, of matrices: the momentum, made orthogonal by five Newton-Schulz steps in bf16. State momentum.
struct MuonOptions {
  double momentum = 0.95, eps = 1e-7;
  bool nesterov = true, match_rms_adamw = false;
};
std::unique_ptr<UpdateRule> muon(const MuonOptions& options);

// torch.optim.RMSprop. States square, and as asked for momentum and mean. Its decay goes into the gradient, as that of
// the two below.
struct RmspropOptions {
  double alpha = 0.99, eps = 1e-8, momentum = 0;
  bool centered = false;
};
std::unique_ptr<UpdateRule> rmsprop(const RmspropOptions& options);

// torch.optim.SGD. State momentum, where there is any.
struct SgdOptions {
  double momentum = 0, dampening = 0;
  bool nesterov = false;
};
std::unique_ptr<UpdateRule> sgd(const SgdOptions& options);

// torch.optim.Adagrad. State square, a sum.
std::unique_ptr<UpdateRule> adagrad(double eps = 1e-10);

}  // namespace easydel::train
