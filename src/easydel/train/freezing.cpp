#include "easydel/train/freezing.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/base/regular_expression.h"

namespace easydel::train {
namespace {

bool freezes(const TrainerConfig& config) { return config.frozen_parameters || !config.frozen_layers.empty(); }

const char* where_of(const TrainerConfig& config) {
  return config.frozen_parameters ? "trainer.frozen_parameters" : "trainer.frozen_layers";
}

// Which of the parameters the keys freeze; UserError as freeze().
std::vector<bool> frozen_of(const std::vector<models::ParameterName>& parameters, const TrainerConfig& config) {
  const std::vector<int64_t>& layers = config.frozen_layers;
  int last = -1;
  for (const models::ParameterName& one : parameters) last = std::max(last, one.unit);
  for (const int64_t layer : layers)
    if (layer > last)
      refuse("trainer.frozen_layers", str("the model has no layer ", layer), str("its layers are 0 to ", last));
  std::optional<RegularExpression> pattern;
  if (config.frozen_parameters) pattern.emplace(*config.frozen_parameters);
  std::vector<bool> out;
  int64_t found = 0, left = 0;
  for (const models::ParameterName& one : parameters) {
    const bool matches = pattern && pattern->found_in(one.path);
    found += matches;
    out.push_back(matches || std::ranges::count(layers, one.unit) > 0);
    left += one.trainable && !out.back();
  }
  if (pattern && found == 0)
    refuse("trainer.frozen_parameters", "'" + *config.frozen_parameters + "' finds no parameter",
           "see `easydel describe model` for their names");
  if (left == 0)
    refuse(where_of(config), pattern && layers.empty() ? "'" + *config.frozen_parameters +
                                                             "' matches every parameter, so there is nothing to train"
                                                       : std::string("nothing is left to train"));
  return out;
}

}  // namespace

void check_freezing(const std::vector<models::ParameterName>& parameters, const TrainerConfig& config) {
  if (freezes(config)) frozen_of(parameters, config);
}

void freeze(models::Model& model, const TrainerConfig& config) {
  if (!freezes(config)) return;
  std::vector<models::ParameterName> names;
  for (const nn::Entry& entry : model.parameters().entries())
    names.push_back({entry.path, entry.unit, entry.trainable});
  const std::vector<bool> frozen = frozen_of(names, config);
  int64_t left = 0;
  for (size_t i = 0; nn::Entry & entry : model.parameters().entries()) {
    if (frozen[i++]) {
      // It was loaded as frozen, or as trainable by another program.
      entry.trainable = false;
      if (entry.shard.defined()) entry.shard.set_requires_grad(false);
    }
    left += entry.trainable;
  }
  const int64_t count = std::ranges::count(frozen, true);
  log::info(where_of(config), ": ", counted(count, "parameter"), count == 1 ? " is" : " are", " frozen, ", left,
            left == 1 ? " is" : " are", " trained");
}

}  // namespace easydel::train
