// The experts of a token and their weights, from a router's logits: every rule of transformers' models as one record.
// Routers are small: this is all ATen, and differentiable by it.
#pragma once

#include <cstdint>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// How logits become scores, and how experts are chosen.
enum class Scoring : uint8_t {
  softmax,            // softmax over all experts, then the top k
  sigmoid,            // sigmoid of each expert, then the top k
  softmax_of_chosen,  // top k logits, softmax over them
  sigmoid_of_chosen,  // top k logits, sigmoid of each
  sparsemixer         // one after the other, each softmax over those near the best remaining one (arXiv 2409.12136)
                      // while training, one of them is sampled in proportion to that softmax
};

struct RouterSpec {
  int64_t experts = 0, top_k = 1;
  Scoring scoring = Scoring::softmax;
  // Only the best `top_groups` of `groups` equal groups are considered. A group's score is its best expert's, or the
  // sum of its best two.
  int64_t groups = 1, top_groups = 1;
  bool two_for_a_group = false;
  bool normalise = false;   // weights are divided by their norm
  double norm_order = 1.0;  // order of that norm
  double norm_plus = 0.0;   // added to the norm
  double norm_least = 0.0;  // minimum of the norm
  double factor = 1.0;      // multiplies all weights, last
  double jitter = 0.0;      // sparsemixer: distance to the best
};

struct Routing {
  Tensor indices;  // int64 [tokens, top_k]
  Tensor weights;  // fp32 [tokens, top_k], with a gradient to the logits
};

// logits [tokens, experts]; correction fp32 [experts] or undefined: added to scores for the choice only (arXiv
// 2408.15664). `lots` fp32 [tokens, lots_of(spec)] or undefined: uniform random numbers in [0, 1) for draws while
// training. A row's result depends on that row alone.
Routing route(const Tensor& logits, const RouterSpec& spec, const Tensor& correction = {}, const Tensor& lots = {});
// Number of random numbers per token while training; 0: nothing is sampled.
int64_t lots_of(const RouterSpec& spec);

// fp32 [experts]: how often each expert occurs in indices [tokens, top_k].
Tensor tokens_of_experts(const Tensor& indices, int64_t experts);

// transformers' load balancing loss (arXiv 2101.03961, equations 4 to 6) over the router logits of all layers, each
// [tokens, experts]; `counts` bool [tokens] or undefined: tokens that count. A scalar with a gradient.
Tensor load_balancing_loss(const std::vector<Tensor>& logits, int64_t top_k, const Tensor& counts = {});
// The mean over layers and tokens of logsumexp(logits)^2 (arXiv 2202.08906).
Tensor router_z_loss(const std::vector<Tensor>& logits, const Tensor& counts = {});

}  // namespace easydel::ops
