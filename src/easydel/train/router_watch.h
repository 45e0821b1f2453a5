// Watches the routers of a mixture of experts through one loss: what they add to it, and how evenly they choose.
#pragma once

#include <vector>

#include "easydel/models/router_loss.h"
#include "easydel/train/method.h"

namespace easydel::train {

// Whether a run's losses have the routers' terms: asked for by the trainer (aux_loss_enabled) or by config.json
// (output_router_logits). Warns where there are none to add.
bool wants_router_losses(const models::Model& model, bool enabled);

class RouterWatch {
 public:
  // `wanted`: terms are added; the model has them. Else only statistics are taken.
  RouterWatch(const models::Model& model, bool wanted) : model_(model), wanted_(wanted) {}

  // A forward that the loss is made of; one of another model (a reference) is passed over.
  void see(const models::Model& model, const models::Outputs& outputs, nn::Pass& pass, bool metrics);
  // Adds the mean of what was seen, times `share`, to the loss, and the metrics: aux_loss, router_z_loss (of losses
  // that are added), router_entropy, router_busiest_load, router_idle_experts.
  void add_to(Loss& loss, double share) const;

 private:
  const models::Model& model_;
  bool wanted_;
  std::vector<models::RouterTerms> terms_;
  std::vector<models::RouterStatistics> statistics_;
};

}  // namespace easydel::train
