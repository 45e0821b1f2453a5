// What the section `sharding` says beside sizes: rules and roles of axes.
#include "easydel/elarge/sharding_config.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/mesh/partition_axis.h"

namespace easydel::elarge {
namespace {

// "where: what\n    hint" as a problem of `key`, or of the item of it that `where` names; the place is the document's.
template <class Action>
void as_problem(config::Keys& keys, const char* key, Action action) {
  try {
    action();
  } catch (const UserError& error) {
    const std::string text = error.what(), path = keys.path_of(key);
    const size_t end = text.find("\n    ");
    std::string what = text.substr(0, end), at, hint = end == std::string::npos ? "" : text.substr(end + 5);
    if (const size_t colon = what.find(": "); what.starts_with(path) && colon != std::string::npos) {
      at = what.substr(path.size(), colon - path.size());
      what.erase(0, colon + 2);
    }
    hint = hint.substr(0, hint.find('\n'));  // a section that was read by itself also says how many problems it has
    keys.problems().add(path + (at.starts_with("[") ? at : ""), what, hint);
  }
}

}  // namespace

void ShardingConfig::check_layouts(config::Keys& keys) const {
  as_problem(keys, "partition_rules", [&] {
    // Sizes do not matter to rules, so that any mesh with these axes will do.
    const mesh::Mesh axes(axis_names, std::vector<int64_t>(axis_names.size(), 1));
    mesh::PartitionRules(rules(), axes, keys.path_of("partition_rules"));
  });
  if (dcn_axis_dims && dcn_axis_dims->size() != axis_names.size())
    keys.refuse(
        "dcn_axis_dims",
        str(dcn_axis_dims->size(), " dims for ", axis_names.size(), " axis names (", join(axis_names, ", "), ")"),
        "give one for each axis; 1 where it stays within a host");
  as_problem(keys, "partition_axis", [&] {
    const mesh::PartitionAxis axis = mesh::partition_axis_of(partition_axis, keys.path_of("partition_axis")), usual;
    for (const char* name : {"data_parallel_axis", "fully_sharded_data_parallel_axis", "tensor_parallel_axis",
                             "sequence_parallel_axis", "expert_parallel_axis"})
      if (!(*axis.find(name) == *usual.find(name)))
        refuse(name, "another axis in this role is not built yet", "leave the five parallel axes as they are named");
    for (const auto& [name, value] : partition_axis.entries) {
      const mesh::AxisField* const field = axis.find(name);
      for (const std::string& one : field ? field->axes.value_or(mesh::Axes{}) : mesh::Axes{})
        if (std::ranges::find(axis_names, one) == axis_names.end())
          keys.problems().add(keys.path_of("partition_axis") + "." + name, value.place,
                              "the mesh has no axis '" + one + "'", did_you_mean(one, axis_names));
    }
  });
  if (partition_axis.is_map() && !partition_axis.entries.empty())
    keys.no_effect("partition_axis", "activations lie where their tokens are; parameters follow partition_rules");
}

}  // namespace easydel::elarge
