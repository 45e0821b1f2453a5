// A mixture of experts: a router chooses some experts for each token, and their outputs are summed. Shared experts,
// which get all tokens, may be added.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "easydel/nn/experts.h"
#include "easydel/nn/layer.h"
#include "easydel/nn/layers.h"
#include "easydel/ops/routing.h"

namespace easydel::nn {

// Names of a router's parameters, relative to the layer's scope.
struct RouterNames {
  std::string weight = "gate.weight";
  std::string bias = {};           // empty: none
  bool bias_counts = true;         // false: loaded and saved, but not used
  std::string correction = {};     // added to scores for the choice alone; empty: none
  bool correction_is_row = false;  // its shape is [1, experts]
};

class Router {
 public:
  // exact: logits are computed in fp32, whatever the model's dtype.
  Router(const Scope& scope, int64_t size, const ops::RouterSpec& spec, const RouterNames& names, bool exact,
         double deviation);
  // x [tokens, size] -> the choice, and the logits [tokens, experts].
  std::pair<ops::Routing, Tensor> operator()(const Tensor& x, Pass& pass) const;
  const ops::RouterSpec& spec() const { return spec_; }

 private:
  ops::RouterSpec spec_;
  bool bias_counts_;
  Parameter weight_, bias_, correction_;
};

struct MoeSpec {
  ops::RouterSpec router;
  bool exact_router = false;
  ExpertsSpec experts;
  double output_dropout = 0;
  double input_jitter = 0;      // while training the input is multiplied by random numbers in 1 +- this
  bool jittered_twice = false;  // the router's input once more
  int64_t shared_inner = 0;     // of the shared experts; 0: none
  bool shared_bias = false, output_bias = false;  // output_bias: a parameter "bias" added to the result
  ops::Activation shared_activation = ops::Activation::silu;
  std::string name = "mlp";  // below the block; "": the block itself
  RouterNames router_names;
  std::string shared = "shared_experts", shared_gate = {};  // shared_gate: a sigmoid gate of their output; empty: none
};

class Moe final : public Layer {
 public:
  Moe(const Scope& block, MoeSpec spec);
  // In addition to x: "router_logits" [tokens, experts], with its gradient, and on request "expert_tokens" [experts].
  LayerOutput forward(const Tensor& x, Pass& pass) const override;
  double idle_elements() const override { return experts_.idle_elements(router_.spec().top_k); }

 private:
  MoeSpec spec_;
  Router router_;
  Experts experts_;
  std::optional<GatedMlp> shared_;
  std::optional<Linear> shared_gate_;
  Parameter bias_;
};

}  // namespace easydel::nn
