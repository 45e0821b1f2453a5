// trainer_type: gspo. Group sequence policy optimisation (arXiv:2507.18071): grpo with ratios of whole completions.
#include "easydel/train/gspo_config.h"

#include "easydel/train/group_policy.h"

namespace easydel::train {

MethodEntry gspo() {
  return {"gspo", [](const Setting& setting) {
            const auto& config = setting.trainer.own_as<GspoConfig>();
            return build_grpo(
                setting, config.grpo,
                {config.grpo.beta, config.rollouts, config.window, config.reference, config.grpo.importance});
          }};
}

}  // namespace easydel::train
