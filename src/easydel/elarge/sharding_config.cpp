// Checks of the section `sharding` beyond sizes: partition rules and roles of axes.
#include "easydel/elarge/sharding_config.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/mesh/partition_axis.h"

namespace easydel::elarge {

void ShardingConfig::check_partition_axis(config::Problems& problems, const std::string& path) const {
  if (!partition_axis.is_map()) return problems.collect(path, [&] { mesh::partition_axis_of(partition_axis, path); });
  mesh::PartitionAxis axis;
  const mesh::PartitionAxis usual;
  const size_t before = problems.size();
  config::read_section(config::section_of<mesh::PartitionAxis>(), partition_axis, &axis, path, problems);
  if (problems.size() != before) return;
  for (const char* name : {"data_parallel_axis", "fully_sharded_data_parallel_axis", "tensor_parallel_axis",
                           "sequence_parallel_axis", "expert_parallel_axis"})
    if (!(*axis.find(name) == *usual.find(name)))
      problems.add(str(path, ".", name), "a different axis in this role is not built yet",
                   "keep the default names of the five parallel axes");
  for (const auto& [name, value] : partition_axis.entries) {
    const mesh::AxisField* const field = axis.find(name);
    for (const std::string& one : field ? field->axes.value_or(mesh::Axes{}) : mesh::Axes{})
      if (std::ranges::find(axis_names, one) == axis_names.end())
        problems.add(str(path, ".", name), value.place, "the mesh has no axis '" + one + "'",
                     did_you_mean(one, axis_names));
  }
}

void ShardingConfig::check_layouts(config::Keys& keys) const {
  config::Problems& problems = keys.problems();
  problems.collect(keys.path_of("partition_rules"), [&] {
    // Rules do not depend on sizes, so any mesh with these axes will do.
    const mesh::Mesh axes(axis_names, std::vector<int64_t>(axis_names.size(), 1));
    mesh::PartitionRules(rules(), axes, keys.path_of("partition_rules"));
  });
  if (dcn_axis_dims && dcn_axis_dims->size() != axis_names.size())
    keys.refuse(
        "dcn_axis_dims",
        str(dcn_axis_dims->size(), " dims for ", axis_names.size(), " axis names (", join(axis_names, ", "), ")"),
        "give one for each axis; 1 for an axis that stays within a host");
  check_partition_axis(problems, keys.path_of("partition_axis"));
  if (partition_axis.is_map() && !partition_axis.entries.empty())
    keys.no_effect("partition_axis", "activations always follow their tokens; use partition_rules to shard parameters");
}

}  // namespace easydel::elarge
