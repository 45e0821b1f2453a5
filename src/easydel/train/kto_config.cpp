#include "easydel/train/kto_config.h"

namespace easydel::train {

void KtoKeys::settle(config::Keys& keys) {
  if (precompute_ref_log_probs && loss_type == KtoLoss::kto)
    keys.refuse("precompute_ref_log_probs",
                "loss_type kto also needs the reference for mismatched answers, which differ in each micro-batch",
                "use loss_type: apo_zero_unpaired, or leave it out");
  if (precompute_ref_log_probs && sync_ref_model)
    keys.refuse("sync_ref_model", "the reference's log-probabilities are computed once with precompute_ref_log_probs");
}

}  // namespace easydel::train
