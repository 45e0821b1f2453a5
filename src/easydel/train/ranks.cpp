#include "easydel/train/ranks.h"

#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>

#include "easydel/base/error.h"

namespace easydel::train {

Ranks::Ranks(std::shared_ptr<const collective::Team> team) : team_(std::move(team)) {
  if (team_->size() > 1)
    refuse("sharding", str("training on ", team_->size(), " ranks is not built yet"), "run on one rank");
}

std::pair<int64_t, int64_t> Ranks::rows(int64_t count) const {
  const int64_t parts = team_->batch_parts(), part = team_->batch_part();
  return {count * part / parts, count * (part + 1) / parts};
}

void Ranks::sum(std::span<double>) const {}
void Ranks::reduce_gradients(nn::ParameterTable&) const {}

double Ranks::gradient_norm(nn::ParameterTable& parameters) const {
  double squares = 0;
  for (const nn::Entry& entry : parameters.entries()) {
    if (!entry.trainable || !entry.shard.grad().defined()) continue;
    const double norm = at::linalg_vector_norm(entry.shard.grad()).item<double>();
    squares += norm * norm;
  }
  return std::sqrt(squares);
}

bool Ranks::any(bool here) const { return here; }
void Ranks::barrier() const {}

}  // namespace easydel::train
