#include "easydel/train/ranks.h"

#include <ATen/ops/from_blob.h>

#include <cmath>

#include "easydel/nn/shards.h"

namespace easydel::train {
namespace {

void reduce(const collective::Group& group, std::span<double> values, collective::Reduce how) {
  if (group.alone() || values.empty()) return;
  group.all_reduce(at::from_blob(values.data(), {int64_t(values.size())}, at::kDouble), how);
}

}  // namespace

Ranks::Ranks(std::shared_ptr<const collective::Team> team) : team_(std::move(team)) {}

std::pair<int64_t, int64_t> Ranks::rows(int64_t count) const {
  const int64_t parts = team_->batch_parts(), part = team_->batch_part();
  return {count * part / parts, count * (part + 1) / parts};
}

void Ranks::sum(std::span<double> values) const {
  reduce(team_->group(mesh::batch_axes()), values, collective::Reduce::sum);
}

void Ranks::max(std::span<double> values) const { reduce(team_->all(), values, collective::Reduce::max); }

void Ranks::reduce_gradients(nn::ParameterTable& parameters) const { nn::reduce_gradients(parameters); }

double Ranks::gradient_norm(const nn::ParameterTable& parameters) const {
  return std::sqrt(nn::squared_gradient_norm(parameters));
}

bool Ranks::any(bool here) const {
  double flag = here ? 1 : 0;
  max({&flag, 1});
  return flag != 0;
}

void Ranks::barrier() const { team_->all().barrier(); }

}  // namespace easydel::train
