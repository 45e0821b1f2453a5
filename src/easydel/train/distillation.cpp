// trainer_type: distillation. A student learns a teacher's probabilities of the tokens of a text, and the tokens
// themselves: alpha T^2 KL(teacher || student at T) + (1 - alpha) cross-entropy, divided by the number of labels in the
// full batch (easydel/trainers/distillation_trainer; with beta trl/trainer/distillation_trainer.py).
#include "easydel/train/distilled_rows.h"

namespace easydel::train {

MethodEntry distillation() {
  return {"distillation", [](const Setting& setting) -> std::unique_ptr<Method> {
            const auto& config = setting.trainer.own_as<DistillationConfig>();
            return std::make_unique<DistilledRows>(setting, config, teaching_terms(config, setting.trainer.common));
          }};
}

}  // namespace easydel::train
