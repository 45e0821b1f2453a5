// A layer of a model: a whole block, or a part of one, such as its token mixer (attention, a recurrence) or its
// feed-forward layer (an mlp, experts). nn/run_layer.h runs, checkpoints and captures blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "easydel/nn/memory.h"
#include "easydel/nn/parameter.h"
#include "easydel/nn/pass.h"
#include "easydel/nn/scope.h"

namespace easydel::nn {

// Tensors that need a gradient in addition to x (router logits, states to distil) are returned, never left in the pass.
struct LayerOutput {
  Tensor x;                              // [tokens, size]
  std::map<std::string, Tensor> extras;  // by name: "router_logits"
};

class Layer {
 public:
  virtual ~Layer() = default;
  // x [tokens, size] -> [tokens, size]
  virtual LayerOutput forward(const Tensor& x, Pass& pass) const = 0;
  // The same, but x of the result holds the rows of the requested tokens only: [requested, size]. A layer overrides it
  // if it can skip the other rows.
  virtual LayerOutput forward_requested(const Tensor& x, Pass& pass) const {
    LayerOutput out = forward(x, pass);
    out.x = pass.stream().requested_rows(out.x);
    return out;
  }
  // What this rank keeps of a running sequence for the layer.
  virtual CacheLayer cache() const { return {}; }
  // Forward floating point operations per token at context length `length`, without the products with weights.
  virtual double mixing_flops(int64_t /*length*/) const { return 0.0; }
  // Number of weight elements that a token does not use (experts that were not chosen).
  virtual double idle_elements() const { return 0.0; }
  // Parameters that forward reads but an earlier layer created: weights that several layers share.
  virtual std::vector<Parameter> shared_parameters() const { return {}; }
};

// Builds a layer of block `index`. `block` is the scope of the block ("model.layers.3"); a part of the block appends
// its own name.
using LayerBuilder = std::function<std::unique_ptr<Layer>(const Scope& block, int64_t index)>;

}  // namespace easydel::nn
