#include "easydel/train/freezing.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/base/regular_expression.h"

namespace easydel::train {
namespace {

void check_layers(const models::Model& model, const std::vector<int64_t>& layers) {
  int last = -1;
  for (const nn::Entry& entry : model.parameters().entries()) last = std::max(last, entry.unit);
  for (const int64_t layer : layers)
    if (layer > last)
      refuse("trainer.frozen_layers", str("the model has no layer ", layer), str("its layers are 0 to ", last));
}

}  // namespace

void freeze(models::Model& model, const TrainerConfig& config) {
  const std::vector<int64_t>& layers = config.frozen_layers;
  if (!config.frozen_parameters && layers.empty()) return;
  check_layers(model, layers);
  std::optional<RegularExpression> pattern;
  if (config.frozen_parameters) pattern.emplace(*config.frozen_parameters);
  int64_t frozen = 0, found = 0, left = 0;
  for (nn::Entry& entry : model.parameters().entries()) {
    const bool matches = pattern && pattern->found_in(entry.path);
    found += matches;
    if (matches || std::ranges::count(layers, entry.unit) > 0) {
      // It was loaded as frozen, or as trainable by another program.
      entry.trainable = false;
      if (entry.shard.defined()) entry.shard.set_requires_grad(false);
      ++frozen;
    }
    left += entry.trainable;
  }
  const std::string where = pattern ? "trainer.frozen_parameters" : "trainer.frozen_layers";
  if (pattern && found == 0)
    refuse(where, "'" + *config.frozen_parameters + "' finds no parameter",
           "see `easydel describe model` for their names");
  if (left == 0)
    refuse(where, pattern && layers.empty()
                      ? "'" + *config.frozen_parameters + "' matches every parameter, so there is nothing to train"
                      : std::string("nothing is left to train"));
  log::info(where, ": ", counted(frozen, "parameter"), frozen == 1 ? " is" : " are", " frozen, ", left,
            left == 1 ? " is" : " are", " trained");
}

}  // namespace easydel::train
