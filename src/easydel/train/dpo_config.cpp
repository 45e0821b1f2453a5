#include "easydel/train/dpo_config.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::train {

void DpoConfig::settle(config::Keys& keys) {
  if (loss_type.empty()) keys.refuse("loss_type", "the list is empty", "name at least one loss, such as sigmoid");
  if (!loss_weights.empty() && loss_weights.size() != loss_type.size())
    keys.refuse("loss_weights", str("has ", loss_weights.size(), " weights for ", loss_type.size(), " losses"),
                "give one weight for each loss_type");
  const auto uses = [&](DpoLoss loss) {
    return std::find(loss_type.begin(), loss_type.end(), loss) != loss_type.end();
  };
  if (uses(DpoLoss::exo_pair) && label_smoothing <= 0)
    keys.refuse("label_smoothing", "exo_pair needs it above 0", "1e-3 is what its paper takes");
  if (uses(DpoLoss::robust) && label_smoothing >= 0.5) keys.refuse("label_smoothing", "robust needs it below 0.5");
  if (keys.given("label_smoothing") && label_smoothing > 0 && !uses(DpoLoss::sigmoid) && !uses(DpoLoss::exo_pair) &&
      !uses(DpoLoss::robust) && !uses(DpoLoss::aot) && !uses(DpoLoss::aot_unpaired))
    keys.no_effect("label_smoothing", "this loss_type does not use it");
  if (use_weighting && (uses(DpoLoss::aot) || uses(DpoLoss::aot_unpaired)))
    keys.refuse("use_weighting", "aot and aot_unpaired sort the pairs, so no pair has a loss to weight",
                "use another loss_type, or leave it out");
  if (reference_free && sync_ref_model)
    keys.refuse("sync_ref_model", "there is no reference model to move with reference_free");
  if (precompute_ref_log_probs && sync_ref_model)
    keys.refuse("sync_ref_model", "the reference's log-probabilities are computed once with precompute_ref_log_probs");
}

}  // namespace easydel::train
