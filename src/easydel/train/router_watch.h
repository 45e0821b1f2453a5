// Collects the routers' outputs of a mixture of experts for one loss: their auxiliary losses and the balance of their
// choices.
#pragma once

#include <vector>

#include "easydel/models/router_loss.h"
#include "easydel/train/method.h"

namespace easydel::train {

// Whether a run's losses include router losses: requested by the trainer (aux_loss_enabled) or by config.json
// (output_router_logits). Warns if the model has none.
bool wants_router_losses(const models::Model& model, bool enabled);

class RouterWatch {
 public:
  // `wanted`: router losses are added, and the model has them. Otherwise only statistics are collected.
  RouterWatch(const models::Model& model, bool wanted) : model_(model), wanted_(wanted) {}

  // Records a forward that contributes to the loss; forwards of another model (a reference) are ignored.
  void see(const models::Model& model, const models::Outputs& outputs, nn::Pass& pass, bool metrics);
  // Adds the mean of the recorded router losses, times `share`, to the loss, and the metrics aux_loss, router_z_loss
  // (if they are added), router_entropy, router_busiest_load, router_idle_experts.
  void add_to(Loss& loss, double share) const;

 private:
  const models::Model& model_;
  bool wanted_;
  std::vector<models::RouterTerms> terms_;
  std::vector<models::RouterStatistics> statistics_;
};

}  // namespace easydel::train
