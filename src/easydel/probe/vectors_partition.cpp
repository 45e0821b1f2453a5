// Recorded cases of layouts: partition_resolve, partition_correction, attn_sharding_rules.
#include "easydel/base/error.h"
#include "easydel/mesh/operation_metadata.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

mesh::PartitionAxis axis_of(const VectorCase& vector) {
  const Value* const given = vector.body.find("partition_axis");
  return given ? mesh::partition_axis_of(*given) : mesh::PartitionAxis{};
}

mesh::SemanticAxes axes_of(const Value& list) {
  if (!list.is_list())
    refuse("resolve", "if axes or mode is empty you should provide dynamic axes", "give axes and a mode");
  mesh::SemanticAxes out;
  for (const Value& item : list.items) {
    std::vector<std::string>& words = out.emplace_back();
    if (item.is_list()) words = words_of(item);
    if (item.is_text()) words = {item.scalar};
  }
  return out;
}

mesh::Mode mode_of(const Value& value) {
  if (value.is_null())
    refuse("resolve", "if axes or mode is empty you should provide dynamic axes", "give axes and a mode");
  if (const auto dimension = value.as_int()) return *dimension;
  return value.scalar;
}

std::optional<std::vector<int64_t>> shape_of(const VectorCase& vector) {
  const Value* const shape = vector.body.find("shape");
  return shape && shape->is_list() ? std::optional(integers_of(*shape)) : std::nullopt;
}

Value resolve(const VectorCase& vector, const VectorFile&) {
  const mesh::PartitionManager manager(axis_of(vector));
  const std::string& what = needed(vector, "op").scalar;
  if (what == "fields") return config::write(manager.partition_axis());
  if (what == "resolve_dynamic")
    return mesh::write_spec(manager.resolve(mesh::named_sharding(needed(vector, "name").scalar), shape_of(vector)));
  if (what == "resolve")
    return mesh::write_spec(
        manager.resolve(axes_of(needed(vector, "axes")), mode_of(needed(vector, "mode")), shape_of(vector)));
  throw VectorNotBuilt("the operation '" + what + "'");
}

Value correct(const VectorCase& vector, const VectorFile&) {
  mesh::Axes names;
  std::vector<int64_t> sizes;
  for (const auto& [name, size] : needed(vector, "mesh").entries) {
    names.push_back(name);
    sizes.push_back(size.as_int().value_or(0));
    if (sizes.back() < 1) refuse("mesh", to_json(size) + " is not a size of axis '" + name + "'", "give at least 1");
  }
  const mesh::PartitionSpec spec = mesh::read_spec(needed(vector, "spec"), vector.id);
  return mesh::write_spec(mesh::corrected_spec(spec, integers_of(needed(vector, "shape")), mesh::Mesh(names, sizes)));
}

Value shard_attention(const VectorCase& vector, const VectorFile&) {
  const mesh::OperationMetadata metadata = mesh::OperationMetadata::from_config({.partition_axis = axis_of(vector)});
  const mesh::AttentionLayout layout = mesh::attention_layout_of(needed(vector, "layout").scalar);
  const bool mni = needed(vector, "qkv_mni_sharding").as_bool().value_or(false);
  return mesh::write_rules(metadata.get_shardings(mode_of(needed(vector, "mode")), layout, mni,
                                                  needed(vector, "softmax_aux_ndim").as_int()));
}

}  // namespace

VectorKind partition_resolve_vectors() { return {.name = "partition_resolve", .answer = resolve}; }
VectorKind partition_correction_vectors() { return {.name = "partition_correction", .answer = correct}; }
VectorKind attn_sharding_rules_vectors() { return {.name = "attn_sharding_rules", .answer = shard_attention}; }

}  // namespace easydel::probe
