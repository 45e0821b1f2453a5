// Recorded cases of OperationMetadata; cases describe in words what was done.
#include <functional>
#include <map>

#include "easydel/base/error.h"
#include "easydel/mesh/operation_metadata.h"
#include "easydel/models/base_config.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

using mesh::OperationMetadata;

mesh::OperationDefaults config(const char* fields) {
  return models::BaseConfig(parse_json(fields)).operation_defaults();
}

Value shown(const OperationMetadata& metadata) {
  const Value all = metadata.to_dict();
  Value out = Value::map();
  for (const char* field :
       {"runtime_dtype", "runtime_softmax_dtype", "sequence_axis_name", "platform", "backend", "operation_configs"}) {
    const Value* const value = all.find(field);
    out.set(field, value ? *value : Value{});
  }
  return out;
}

Value under_a_mesh() {
  const mesh::MeshScope scope(mesh::create_mesh({1, 2, 1, 4, 1}, mesh::default_axes(), 8));
  const OperationMetadata metadata = OperationMetadata::of("float32");
  Value out = shown(metadata), sizes = Value::map();
  for (const std::string& axis : mesh::default_axes()) sizes.set(axis, Value::integer(metadata.mesh().size(axis)));
  out.set("mesh", sizes);
  return out;
}

Value operation_configs() {
  const auto metadata = OperationMetadata::from_config(config(R"({"operation_configs": {"flash_attn2": 5}})"));
  const auto plain = OperationMetadata::from_config(config("{}"));
  Value out = Value::list();
  for (const Value* found : {plain.get_operation_config("flash_attn2"), metadata.get_operation_config("flash_attn2"),
                             metadata.get_operation_config("ring")})
    out.items.push_back(found ? *found : Value{});
  return out;
}

Value done(const VectorCase& vector, const VectorFile&) {
  static const std::map<std::string, std::function<Value()>, std::less<>> all{
      {"from_config", [] { return shown(OperationMetadata::from_config(config("{}"))); }},
      {"from_config_seqaxis",
       [] {
         return shown(
             OperationMetadata::from_config(config(R"({"sequence_axis_name": "zz", "attn_dtype": "float32"})")));
       }},
      {"from_base_config_kw",
       [] { return shown(OperationMetadata::of("float32", config(R"({"sequence_axis_name": "zz"})"))); }},
      {"no_mesh", [] { return shown(OperationMetadata::of("float32")); }},
      {"ambient_mesh", under_a_mesh},
      {"opcfg", operation_configs},
  };
  const auto found = all.find(vector.id);
  if (found == all.end()) throw VectorNotBuilt("what '" + vector.id + "' was");
  return found->second();
}

}  // namespace

VectorKind operation_metadata_vectors() { return {.name = "operation_metadata", .answer = done}; }

}  // namespace easydel::probe
