#include "easydel/nn/gather.h"

#include <algorithm>

#include "easydel/collective/autograd.h"

namespace easydel::nn {

using collective::GatherGradient;

Tensor gathered(const Entry& entry) {
  const collective::Team& team = *entry.team;
  const mesh::Axes tensor_axis = {"tp"}, &batch = mesh::batch_axes();
  const auto part = size_t(entry.use_dimension);
  // Laid out as it is used: the part is already here.
  const bool in_place = entry.use == Use::part && entry.layout[part] == tensor_axis;
  Tensor x = entry.shard;
  for (size_t dimension = 0; dimension < entry.layout.size(); ++dimension) {
    if (in_place && dimension == part) continue;
    // A fused axis is put together from its fastest axis outwards. Along the axes of the batch ranks have other rows
    // and so other gradients; along the others they compute the same.
    const mesh::Axes& axes = entry.layout[dimension];
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const bool other_rows = std::find(batch.begin(), batch.end(), *axis) != batch.end();
      x = collective::gather(team.group({*axis}), x, int64_t(dimension),
                             other_rows ? GatherGradient::sum : GatherGradient::same);
    }
  }
  if (entry.use == Use::part && !in_place) x = collective::scatter(team.group(tensor_axis), x, int64_t(part));
  if (entry.use == Use::shared) x = collective::enter(team.group(tensor_axis), x);
  return x;
}

}  // namespace easydel::nn
