#include "easydel/train/distillation_config.h"

namespace easydel::train {

void DistillationConfig::settle(config::Keys& keys) {
  if (beta && keys.given("alpha")) keys.no_effect("alpha", "beta is given");
  if (hidden_state_layers && !hidden_state_loss_weight)
    keys.no_effect("hidden_state_layers", "hidden_state_loss_weight is not given");
  if (attention_layers && !attention_loss_weight)
    keys.no_effect("attention_layers", "attention_loss_weight is not given");
}

}  // namespace easydel::train
