#include "easydel/train/router_watch.h"

#include "easydel/base/log.h"

namespace easydel::train {

bool wants_router_losses(const models::Model& model, bool enabled) {
  const auto loss = model.router_loss();
  if (enabled && !loss)
    log::warning("trainer.aux_loss_enabled: ", model.model_type(), " has no router losses; none are added");
  return loss && (enabled || loss->asked);
}

void RouterWatch::see(const models::Model& model, const models::Outputs& outputs, nn::Pass& pass, bool metrics) {
  if (&model != &model_) return;
  if (wanted_)
    if (models::RouterTerms terms = models::router_terms(model, outputs, pass); terms.sum.defined())
      terms_.push_back(std::move(terms));
  if (metrics)
    if (const auto found = models::router_statistics(outputs)) statistics_.push_back(*found);
}

void RouterWatch::add_to(Loss& loss, double share) const {
  double balance = 0, z = 0;
  const auto seen = double(terms_.size());
  for (const models::RouterTerms& terms : terms_) {
    loss.sum = loss.sum + terms.sum * (share / seen);
    if (terms.balance.defined()) balance += terms.balance.item<double>();
    if (terms.z.defined()) z += terms.z.item<double>();
  }
  if (!terms_.empty() && terms_.front().balance.defined()) loss.metrics.push_back({"aux_loss", balance, seen});
  if (!terms_.empty() && terms_.front().z.defined()) loss.metrics.push_back({"router_z_loss", z, seen});
  models::RouterStatistics sum;
  for (const models::RouterStatistics& one : statistics_) {
    sum.entropy += one.entropy;
    sum.busiest_load += one.busiest_load;
    sum.idle_experts += one.idle_experts;
  }
  const auto count = double(statistics_.size());
  if (statistics_.empty()) return;
  loss.metrics.push_back({"router_entropy", sum.entropy, count});
  loss.metrics.push_back({"router_busiest_load", sum.busiest_load, count});
  loss.metrics.push_back({"router_idle_experts", sum.idle_experts, count});
}

}  // namespace easydel::train
