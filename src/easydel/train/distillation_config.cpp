#include "easydel/train/distillation_config.h"

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

// Layers that are compared, the same in both models.
void check_layers(const char* key, const std::optional<std::vector<int64_t>>& layers, const ModelSizes& model,
                  const ModelSizes& teacher) {
  const std::string where = str("trainer.", key);
  if (!layers && model.layers != teacher.layers)
    refuse(where, str("the model has ", model.layers, " layers, and the teacher ", teacher.layers),
           "name the layers to compare; negative ones count from the last");
  if (!layers) return;
  for (const ModelSizes* one : {&model, &teacher})
    for (const int64_t given : *layers)
      if (const int64_t index = given < 0 ? one->layers + given : given; index < 0 || index >= one->layers)
        refuse(where,
               str("there is no layer ", given, " in ", one == &teacher ? "the teacher" : "the model", ", which has ",
                   one->layers),
               str("give numbers from ", -one->layers, " to ", one->layers - 1));
}

}  // namespace

void DistillationConfig::check_sizes(const ModelSizes& model, const ModelSizes* teacher) const {
  if (!teacher) return;
  if (hidden_state_loss_weight.value_or(0) > 0)
    check_layers("hidden_state_layers", hidden_state_layers, model, *teacher);
  if (attention_loss_weight.value_or(0) > 0) check_layers("attention_layers", attention_layers, model, *teacher);
}

void DistillationConfig::settle(config::Keys& keys) {
  if (beta && keys.given("alpha")) keys.no_effect("alpha", "beta is given");
  if (hidden_state_layers && !hidden_state_loss_weight)
    keys.no_effect("hidden_state_layers", "hidden_state_loss_weight is not given");
  if (attention_layers && !attention_loss_weight)
    keys.no_effect("attention_layers", "attention_loss_weight is not given");
}

}  // namespace easydel::train
