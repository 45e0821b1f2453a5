// AdamW with decoupled decay (arXiv:1711.05101) over the trainable shards of a table: fp32 state, torch's order of
// operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/nn/parameter.h"

namespace easydel::train {

struct AdamWOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, weight_decay = 0;
  // Only parameters whose path it finds are decayed; not given: all but norms and biases.
  std::optional<std::string> decay_pattern;
};

class AdamW {
 public:
  struct Slot {
    nn::Entry* entry;
    Tensor mean, square;  // of the gradient, as the shard
    bool decayed;
  };

  AdamW(nn::ParameterTable& parameters, const AdamWOptions& options);

  // One update with what stands in shard.grad(), which is dropped. Shards without a gradient are left alone.
  void step(double rate);
  void drop_gradients();
  void scale_gradients(double factor);

  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  std::vector<Slot>& slots() { return slots_; }
  int64_t state_bytes() const;

 private:
  AdamWOptions options_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
};

}  // namespace easydel::train
