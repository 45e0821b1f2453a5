#include "easydel/models/not_finite.h"

#include <ATen/ops/aminmax.h>

#include <cmath>

namespace easydel::models {

std::string first_not_finite(const Model& model) {
  const c10::AutoGradMode no_grad(false);
  for (const nn::Entry& entry : model.parameters().entries()) {
    if (!entry.shard.defined() || entry.shard.numel() == 0 || !entry.shard.is_floating_point()) continue;
    const auto [low, high] = at::aminmax(entry.shard.detach());  // NaN if there is one
    if (!std::isfinite(low.item<double>()) || !std::isfinite(high.item<double>())) return entry.path;
  }
  return "";
}

}  // namespace easydel::models
