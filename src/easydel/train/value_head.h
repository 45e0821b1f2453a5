// A value function beside a model: a number for each token, from the model's hidden states. Its weight is trained with
// the model and belongs to the method's state: no checkpoint of the model holds it.
#pragma once

#include <memory>

#include "easydel/models/model.h"
#include "easydel/train/method_state.h"

namespace easydel::train {

class ValueHead {
 public:
  // Adds the weight to the model's parameters, with values that follow from the seed. One for a model.
  ValueHead(models::Model& model, uint64_t seed);

  // hidden [tokens, size] -> fp32 [tokens], with gradients where they are on.
  Tensor values(const Tensor& hidden) const;
  void add_state(MethodState& state) const;
  void restore(const SavedState& saved) const;

 private:
  nn::Entry* entry_;  // of the model's table
};

}  // namespace easydel::train
