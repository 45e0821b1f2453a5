// An optimizer over the trainable shards of a table: a rule (train/update_rules.h) and its state for each parameter.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/nn/parameter.h"
#include "easydel/train/update_rules.h"

namespace easydel::train {

// The rule of a parameter's update: one for all, or a second one for parameters to which the first does not apply.
struct OptimizerRules {
  std::shared_ptr<const UpdateRule> rule;
  // for parameters that are not matrices of products (Muon); null: `rule`
  std::shared_ptr<const UpdateRule> others = {};
};

struct OptimizerOptions {
  OptimizerRules rules = {adamw({})};
  double weight_decay = 0;
  // Only parameters whose path it finds are decayed; not given: all but norms and biases.
  std::optional<std::string> decay_pattern = {};
};

// What every gradient is multiplied by so that their norm is at most `most`: torch's clip_grad_norm_.
double clip_factor(double norm, double most);

class Optimizer {
 public:
  struct Slot {
    nn::Entry* entry;
    std::shared_ptr<const UpdateRule> rule;
    OptimizerStates states;  // as the shard; of a rule that works on whole parameters, as those, on every rank
    bool decayed;
  };

  Optimizer(nn::ParameterTable& parameters, const OptimizerOptions& options);

  // One update with the gradients in shard.grad(), which are then released. Shards without a gradient do not change.
  // Collective if a rule works on whole parameters.
  void step(double rate);
  void drop_gradients();
  // The next step() multiplies every gradient by `factor`; shard.grad() itself does not change.
  void scale_gradients(double factor) { scale_ *= factor; }

  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  std::vector<Slot>& slots() { return slots_; }
  const std::vector<Slot>& slots() const { return slots_; }
  int64_t state_bytes() const;

 private:
  void update(Slot& slot, double rate, const Tensor& copy) const;

  double weight_decay_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
  double scale_ = 1;
};

}  // namespace easydel::train
