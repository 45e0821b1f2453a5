// Experts: a stack of equal mlps, of which each token is sent to a few. nn/moe.h decides to which.
#pragma once

#include <string>
#include <vector>

#include "easydel/nn/pass.h"
#include "easydel/nn/region.h"
#include "easydel/nn/scope.h"
#include "easydel/ops/activation.h"
#include "easydel/ops/moe.h"

namespace easydel::nn {

// One way in which checkpoints hold the weights of experts. Names are relative to the layer's scope; "{}" is replaced
// by an expert's index, and a name without it is of one tensor for all experts.
struct ExpertFiles {
  std::string gate = "gate_proj.weight", up = "up_proj.weight", down = "down_proj.weight";
  std::string gate_bias = {}, up_bias = {}, down_bias = {};
  // If gate and up have one name, the tensor holds both: gate's rows first, or the rows of the two interleaved.
  bool interleaved = false;
  bool transposed = false;          // [.., in, out]
  bool flat = false;                // [experts * inner, size] for all three
  Packing packing = Packing::none;  // "_blocks" and "_scales" are appended to the names of weights

  // The two ways of transformers: a tensor for each expert, or all in "gate_up_proj" and "down_proj".
  static std::vector<ExpertFiles> usual(const std::string& experts = "experts");
  // The same where a tensor for each expert is called w1 (gate), w3 (up) or w2 (down).
  static std::vector<ExpertFiles> numbered();
  static ExpertFiles each(const std::string& experts, const std::string& gate, const std::string& up,
                          const std::string& down);
  static ExpertFiles fused(const std::string& gate_up, const std::string& down);
};

// One linear layer (gate, up or down) of all experts.
class ExpertLinear {
 public:
  struct Options {
    Split split = Split::none;
    double deviation = 0.02;
    Region region = {};
    std::vector<TensorSource> sources, bias_sources;  // bias_sources empty: there is no bias
  };
  ExpertLinear(const Scope& scope, int64_t experts, int64_t in, int64_t out, const Options& options);

  // x [rows, in] -> [rows, out]. `rows` says which expert and which of the layer's rows each of x's is of.
  Tensor operator()(const Tensor& x, const ops::ExpertRows& rows, Pass& pass) const;

 private:
  Parameter weight_, bias_;
};

struct ExpertsSpec {
  int64_t experts = 0, size = 0, inner = 0;
  bool gated = true;  // down(activation(gate) * up), else down(activation(up))
  ops::Activation activation = ops::Activation::silu;
  // gpt_oss: down((up + 1) * gate * sigmoid(alpha * gate)), gate below the limit, up within it. 0: off
  double clamp_limit = 0, clamp_alpha = 1.702;
  bool bias = false;
  bool weigh_input = false;  // the router's weight multiplies an expert's input, not its output
  int64_t identities = 0;    // experts after the real ones that return their input
  double deviation = 0.02, output_deviation = 0.02;
  std::vector<ExpertFiles> files = ExpertFiles::usual();
};

class Experts {
 public:
  // `scope` is the layer's; parameters are named "experts.gate_proj.weight", ... below it.
  Experts(const Scope& scope, ExpertsSpec spec);
  // x [tokens, size], indices int64 [tokens, top_k], weights fp32 [tokens, top_k] -> [tokens, size].
  Tensor operator()(const Tensor& x, const Tensor& indices, const Tensor& weights, Pass& pass) const;
  // Number of weight elements that a token does not use.
  double idle_elements(int64_t top_k) const;

 private:
  Tensor activated(const Tensor& gate, const Tensor& up) const;
  Tensor computed(const Tensor& x, const ops::ExpertRows& rows, Pass& pass) const;

  ExpertsSpec spec_;
  ops::MoeMethod method_;
  Region region_;
  std::optional<ExpertLinear> gate_, up_, down_;
};

}  // namespace easydel::nn
