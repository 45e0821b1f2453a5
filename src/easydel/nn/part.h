// A part of a block that a family brings: what mixes tokens (attention, a recurrence) or what feeds each one forward
// (an mlp, experts).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "easydel/nn/memory.h"
#include "easydel/nn/run_layer.h"
#include "easydel/nn/scope.h"

namespace easydel::nn {

class Part {
 public:
  virtual ~Part() = default;
  // x [tokens, hidden], normed as the block does it, -> [tokens, hidden], and what a loss needs (router logits).
  virtual LayerOutput forward(const Tensor& x, Pass& pass) const = 0;
  // The same, of whose result only the wanted tokens' rows are asked for: [wanted, hidden].
  virtual LayerOutput forward_wanted(const Tensor& x, Pass& pass) const {
    LayerOutput out = forward(x, pass);
    out.x = pass.wanted(out.x);
    return out;
  }
  // What it keeps of a running sequence, on this rank.
  virtual CacheLayer cache() const { return {}; }
  // Forward floating point operations a token at context length `length`, beside the products with its weights.
  virtual double mixing_flops(int64_t /*length*/) const { return 0.0; }
  // Elements of its weights that a token does not meet (experts that were not chosen).
  virtual double idle_elements() const { return 0.0; }
};

// Builds a part of layer `layer`; `block` is the scope of the block ("model.layers.3"), the part appends its own name.
using PartBuilder = std::function<std::unique_ptr<Part>(const Scope& block, int64_t layer)>;

}  // namespace easydel::nn
