// The one seam through which every layer is called: checkpointing, capture, and later the gathering and freeing of
// weights live here and nowhere else.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "easydel/nn/memory.h"
#include "easydel/nn/parameter.h"
#include "easydel/nn/pass.h"

namespace easydel::nn {

// Whatever needs a gradient beside x (router logits, states to distil) is returned, never left in the pass.
struct LayerOutput {
  Tensor x;                              // [tokens, size]
  std::map<std::string, Tensor> extras;  // outputs of the checkpoint's node as well
};

class Layer {
 public:
  Layer(std::string path, std::vector<Parameter> parameters = {})
      : path_(std::move(path)), parameters_(std::move(parameters)) {}
  virtual ~Layer() = default;
  virtual LayerOutput forward(const Tensor& x, Pass& pass) const = 0;
  // The same, of whose result only the wanted tokens' rows are asked for: [wanted, size].
  virtual LayerOutput forward_wanted(const Tensor& x, Pass& pass) const;
  // What it keeps of a running sequence, on this rank.
  virtual CacheLayer cache() const { return {}; }
  // As nn::Part says them.
  virtual double mixing_flops(int64_t /*length*/) const { return 0.0; }
  virtual double idle_elements() const { return 0.0; }

  const std::string& path() const { return path_; }  // "model.layers.0"
  // Everything that forward reads with a gradient: inputs of the checkpoint's node.
  const std::vector<Parameter>& parameters() const { return parameters_; }

 protected:
  void set_parameters(std::vector<Parameter> parameters) { parameters_ = std::move(parameters); }

 private:
  std::string path_;
  std::vector<Parameter> parameters_;
};

// Runs layer number `index` on x. The layer must outlive the backward.
LayerOutput run_layer(Pass& pass, int64_t index, const Layer& layer, const Tensor& x);

// The same with the wanted tokens' rows as its result. Those of the extras are the wanted ones or all.
LayerOutput run_layer_wanted(Pass& pass, int64_t index, const Layer& layer, const Tensor& x);

}  // namespace easydel::nn
