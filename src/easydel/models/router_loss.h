// Auxiliary losses of the routers of a mixture of experts, and statistics for training.
#pragma once

#include "easydel/models/model.h"

namespace easydel::models {

// Router logits [tokens, experts] of every router of the pass, attention's too.
std::vector<Tensor> router_logits(const Outputs& outputs);

struct RouterTerms {
  Tensor balance;  // the load balancing loss of all routers, a scalar with a gradient; undefined: no routers ran
  Tensor z;        // the z-loss of the routers, or of the logits; undefined if its coefficient is 0
  Tensor sum;      // both with their coefficients, to be added to a mean loss; undefined: nothing
};
// Of a model with router_loss(). `counts` bool [tokens] or undefined: tokens that count (padding does not).
RouterTerms router_terms(const Model& model, const Outputs& outputs, nn::Pass& pass, const Tensor& counts = {});

// Means over the routers of a pass, without gradients.
struct RouterStatistics {
  double entropy = 0;       // of a token's softmax over experts, nats
  double busiest_load = 0;  // tokens of the busiest expert over an even share: 1 is balanced
  double idle_experts = 0;  // share of experts that no token met
};
std::optional<RouterStatistics> router_statistics(const Outputs& outputs);

}  // namespace easydel::models
