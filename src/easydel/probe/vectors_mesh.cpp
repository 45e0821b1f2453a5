// Recorded cases of meshes: create_mesh, parse_mesh_string, expert_mesh.
#include "easydel/base/error.h"
#include "easydel/mesh/expert_mesh.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

int64_t number(const VectorCase& vector, const char* key) {
  const auto out = needed(vector, key).as_int();
  if (!out) refuse(vector.id, str("\"", key, "\" is not a whole number"));
  return *out;
}

// Sizes as a user would write them: 1.0 and "2" are not sizes.
std::vector<int64_t> dims_of(const Value& list) {
  std::vector<int64_t> out;
  for (const Value& item : list.items) {
    const auto size = item.as_int();
    if (!size || item.scalar.find_first_of(".eE") != std::string::npos)
      refuse("sharding_axis_dims", to_json(item) + " is not a size of an axis");
    out.push_back(*size);
  }
  return out;
}

Value shape_of(const mesh::Mesh& mesh) {
  Value shape = Value::map();
  for (size_t i = 0; i < mesh.names().size(); ++i) shape.set(mesh.names()[i], Value::integer(mesh.sizes()[i]));
  return shape;
}

// Ranks, nested like the mesh.
Value ranks_of(const mesh::Mesh& mesh, size_t axis, int64_t& next) {
  if (axis == mesh.sizes().size()) return Value::integer(next++);
  Value out = Value::list();
  for (int64_t i = 0; i < mesh.sizes()[axis]; ++i) out.items.push_back(ranks_of(mesh, axis + 1, next));
  return out;
}

Value described(const mesh::Mesh& mesh) {
  Value out = Value::map();
  out.set("shape", shape_of(mesh));
  out.set("axis_names", list_of(mesh.names()));
  if (mesh.ranks() > 16) {
    out.set("device_ids", Value::text("arange"));
  } else {
    std::vector<int64_t> ranks(mesh.ranks());
    for (int64_t i = 0; i < mesh.ranks(); ++i) ranks[i] = i;
    out.set("device_ids", list_of(ranks));
  }
  return out;
}

Value create_mesh(const VectorCase& vector, const VectorFile&) {
  mesh::MeshShape shape{.dims = dims_of(needed(vector, "axis_dims")),
                        .names = words_of(needed(vector, "axis_names")),
                        .ranks = number(vector, "devices")};
  if (const Value* dcn = vector.body.find("dcn_axis_dims"); dcn && !dcn->is_null()) shape.dcn_dims = dims_of(*dcn);
  // The recordings were made on CPUs; a missing backend is refused there and here.
  if (const Value* backend = vector.body.find("backend");
      backend && backend->is_text() && !backend->scalar.empty() && backend->scalar != "cpu")
    refuse("backend", "'" + backend->scalar + "' is not on this machine", "cpu");
  return described(mesh::create_mesh(shape));
}

Value parse_mesh_string(const VectorCase& vector, const VectorFile&) {
  return described(mesh::parse_mesh_string(needed(vector, "string").scalar, words_of(needed(vector, "names")),
                                           number(vector, "devices")));
}

Value expert_mesh(const VectorCase& vector, const VectorFile&) {
  const mesh::Mesh whole =
      mesh::create_mesh(dims_of(needed(vector, "axis_dims")), mesh::default_axes(), number(vector, "devices"));
  mesh::ExpertBinding binding;
  if (const Value* bound = vector.body.find("fsdp_is_ep_bound")) binding.fsdp = bound->as_bool().value_or(true);
  if (const Value* bound = vector.body.find("sp_is_ep_bound")) binding.sp = bound->as_bool().value_or(true);
  mesh::PartitionAxis axis;
  if (const Value* given = vector.body.find("partition_axis")) axis = mesh::partition_axis_of(*given);
  const mesh::Mesh folded = mesh::expert_mesh(whole, axis, binding),
                   automatic = mesh::auto_expert_mesh(whole, axis, binding);
  const auto types = [](const mesh::Mesh& mesh) {
    return list_of(
        std::vector<std::string>(mesh.names().size(), "AxisType." + std::string(mesh::name_of(mesh.axis_type()))));
  };
  Value out = Value::map();
  out.set("shape", shape_of(folded));
  out.set("axis_names", list_of(folded.names()));
  if (vector.body.find("partition_axis")) return out;  // nothing more was recorded of renamed axes
  out.set("axis_types", types(folded));
  out.set("auto_axis_types", types(automatic));
  out.set("abstract", shape_of(folded));
  int64_t next = 0;
  out.set("device_ids", ranks_of(folded, 0, next));
  return out;
}

}  // namespace

VectorKind create_mesh_vectors() { return {.name = "create_mesh", .answer = create_mesh}; }
VectorKind parse_mesh_string_vectors() { return {.name = "parse_mesh_string", .answer = parse_mesh_string}; }
VectorKind expert_mesh_vectors() { return {.name = "expert_mesh", .answer = expert_mesh}; }

}  // namespace easydel::probe
