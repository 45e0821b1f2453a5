#include "easydel/nn/gather.h"

#include <algorithm>

#include "easydel/collective/autograd.h"

namespace easydel::nn {

using collective::GatherGradient;

namespace {

const mesh::Axes tensor_axis = {"tp"};

// Dimension `dimension` is sharded as it is used: this rank already has its part.
bool in_place(const Entry& entry, size_t dimension) {
  return entry.use == Use::part && dimension == size_t(entry.use_dimension) && entry.layout[dimension] == tensor_axis;
}

}  // namespace

bool is_gathered(const Entry& entry) {
  for (size_t dimension = 0; dimension < entry.layout.size(); ++dimension)
    if (!entry.layout[dimension].empty() && !in_place(entry, dimension)) return true;
  return false;
}

Tensor gathered(const Entry& entry) {
  const collective::Team& team = *entry.team;
  const mesh::Axes& batch = mesh::batch_axes();
  const auto part = size_t(entry.use_dimension);
  Tensor x = entry.shard;
  for (size_t dimension = 0; dimension < entry.layout.size(); ++dimension) {
    if (in_place(entry, dimension)) continue;
    // A fused axis is gathered from its fastest axis outwards. Along the batch's axes ranks have different rows, and so
    // different gradients; along the other axes they compute the same.
    const mesh::Axes& axes = entry.layout[dimension];
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const bool other_rows = std::find(batch.begin(), batch.end(), *axis) != batch.end();
      x = collective::gather(team.group({*axis}), x, int64_t(dimension),
                             other_rows ? GatherGradient::sum : GatherGradient::same);
    }
  }
  if (entry.use == Use::part && !in_place(entry, part))
    x = collective::scatter(team.group(tensor_axis), x, int64_t(part));
  if (entry.use == Use::shared) x = collective::enter(team.group(tensor_axis), x);
  return x;
}

}  // namespace easydel::nn
