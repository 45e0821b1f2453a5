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
  std::shared_ptr<const UpdateRule> embeddings = {};  // null: as the others
};

// Parameters with a learning rate, and perhaps a decay, of their own.
struct ParameterGroup {
  std::string pattern;  // a regular expression; a parameter is in the first group that finds its path
  double rate = 1;      // as a multiple of the run's
  std::optional<double> weight_decay = {};  // not given: as for other parameters
};

struct OptimizerOptions {
  OptimizerRules rules = {adamw({})};
  double weight_decay = 0;
  std::vector<ParameterGroup> groups = {};
  std::optional<double> ema_decay = {};  // keep an exponential moving average of the parameters; not given: none
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
    // As the shard; of a rule that works on whole parameters, as those, on every rank; or scalars. In addition to the
    // rule's own: ema, and trained while show_average() holds.
    OptimizerStates states;
    double decay;     // weight decay
    double rate = 1;  // multiplies the step's
  };

  // UserError "trainer.learning_rates..." for a group that no parameter is in.
  Optimizer(nn::ParameterTable& parameters, const OptimizerOptions& options);

  // One update with the gradients in shard.grad(), which are then released. Shards without a gradient do not change.
  // Collective if a rule works on whole parameters.
  void step(double rate);
  void drop_gradients();
  // The next step() multiplies every gradient by `factor`; shard.grad() itself does not change.
  void scale_gradients(double factor) { scale_ *= factor; }

  bool has_moving_average() const { return ema_decay_.has_value(); }
  // Puts the averages that are evaluated in the place of the parameters (the moving average, or that of the rule; there
  // may be none), and what is trained back. No step() between them.
  void show_average();
  void show_trained();
  bool shows_average() const { return shows_average_; }

  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  std::vector<Slot>& slots() { return slots_; }
  const std::vector<Slot>& slots() const { return slots_; }
  int64_t state_bytes() const;

 private:
  void update(Slot& slot, double rate, const Tensor& copy) const;

  std::optional<double> ema_decay_;
  bool shows_average_ = false;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
  double scale_ = 1;
};

}  // namespace easydel::train
