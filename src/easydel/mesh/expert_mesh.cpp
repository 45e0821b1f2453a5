// Folds a mesh.
#include "easydel/mesh/expert_mesh.h"

#include <set>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::mesh {

Mesh expert_mesh(const Mesh& mesh, const PartitionAxis& axis, ExpertBinding binding, AxisType type) {
  const PartitionAxis roles = axis.resolved();
  const auto axes = [](const AxisField& role) { return role.axes.value_or(Axes{}); };
  for (const AxisField* role :
       {&roles.data_parallel_axis, &roles.fully_sharded_data_parallel_axis, &roles.expert_parallel_axis,
        &roles.tensor_parallel_axis, &roles.sequence_parallel_axis})
    for (const std::string& name : axes(*role))
      if (!mesh.has(name))
        refuse("partition_axis", "the mesh has no axis '" + name + "'", did_you_mean(name, mesh.names()));
  const auto size = [&](const AxisField& role) { return mesh.size(axes(role)); };
  const int64_t fsdp = size(roles.fully_sharded_data_parallel_axis), sp = size(roles.sequence_parallel_axis);
  const int64_t dp = size(roles.data_parallel_axis) * (binding.fsdp ? 1 : fsdp) * (binding.sp ? 1 : sp);
  const int64_t ep = size(roles.expert_parallel_axis) * (binding.fsdp ? fsdp : 1) * (binding.sp ? sp : 1);
  const int64_t tp = size(roles.tensor_parallel_axis);
  Axes names;
  for (const AxisField* role : {&roles.data_parallel_axis, &roles.expert_parallel_axis, &roles.tensor_parallel_axis})
    names.push_back(join(axes(*role), "_"));
  if (dp * ep * tp != mesh.ranks() || std::set<std::string>(names.begin(), names.end()).size() != 3)
    refuse("partition_axis",
           str("cannot reshape array of size ", mesh.ranks(), " into shape (", dp, ",", ep, ",", tp, ")"),
           "give data, fully sharded data, expert, tensor and sequence parallelism an axis of their own each");
  return Mesh(names, {dp, ep, tp}, type);
}

}  // namespace easydel::mesh
