// Decides while a model is built how products read its weights: quantization, adapters. The policies of a model are
// asked in order, and each gets the result of the one before it.
#pragma once

#include <memory>

#include "easydel/nn/scope.h"
#include "easydel/nn/weight.h"

namespace easydel::nn {

class WeightPolicy {
 public:
  virtual ~WeightPolicy() = default;
  // `scope` is the layer's: parameters that the policy creates by it belong to the layer. A policy returns `weight` to
  // leave it as it is.
  //
  // A linear layer's weight (is_linear). `shared`: the entry is an embedding whose values a tied head reads.
  virtual std::shared_ptr<Weight> linear(const Scope&, Entry&, std::shared_ptr<Weight> weight, bool /*shared*/) {
    return weight;
  }
  virtual std::shared_ptr<Weight> embedding(const Scope&, Entry&, std::shared_ptr<Weight> weight) { return weight; }
  // The weight of a router, in its own layer.
  virtual std::shared_ptr<Weight> router(const Scope&, Entry&, std::shared_ptr<Weight> weight) { return weight; }
  // The stacked weights of experts.
  virtual std::shared_ptr<WeightStack> experts(const Scope&, Entry&, std::shared_ptr<WeightStack> weight) {
    return weight;
  }
};

}  // namespace easydel::nn
