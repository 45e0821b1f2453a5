// Sharding of the arrays of an attention operation, and the other settings of an operation: EasyDeL's
// AttnShardingRules and OperationMetadata.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/mesh/partition_manager.h"

namespace easydel::mesh {

// The order of dimensions: [batch, time, heads, dim], [batch, heads, time, dim], or all tokens as one list
// [tokens, heads, dim], which the axes of batch and time shard together.
enum class AttentionLayout : uint8_t { bthd, bhtd, thd };
AttentionLayout attention_layout_of(std::string_view name);  // UserError: no such layout

struct AttnShardingRules {
  PartitionSpec query3d;  // [batch, heads, dim]
  PartitionSpec query, key, value;
  PartitionSpec bias, mask;  // [batch, heads, queries, keys]
  PartitionSpec output;
  PartitionSpec q_segment_ids, kv_segment_ids;  // [batch, time]; with thd [tokens]
  std::optional<PartitionSpec> softmax_aux;     // [heads] or [heads or sinks, kv heads]
  bool operator==(const AttnShardingRules&) const = default;
};
Value write_rules(const AttnShardingRules& rules);  // {"query3d": {"P": [...]}, ..., "softmax_aux": null}

// Defaults of a model's configuration for its operations; filled in by BaseConfig.
struct OperationDefaults {
  std::string attn_dtype = "bfloat16", attn_softmax_dtype = "float32";
  std::string sequence_axis_name = "sp", platform = "jax", backend = "cpu";
  PartitionAxis partition_axis = {};
  std::optional<Value> operation_configs = {};  // a map: name of an operation -> its settings
  Mesh mesh = {};
};

struct OperationMetadata {
  std::string runtime_dtype;  // the only required member
  std::optional<std::string> runtime_softmax_dtype = {};
  std::string sequence_axis_name = "sp", platform = "jax", backend = "cpu";
  PartitionAxis partition_axis = {};
  std::optional<Value> operation_configs = {};

  // Everything from the configuration, including the name of the sequence axis.
  static OperationMetadata from_config(const OperationDefaults& config);
  // Members that are not given come from `config`, except runtime_softmax_dtype and sequence_axis_name. Without `mesh`,
  // uses the current one (MeshScope). UserError: there is no mesh.
  static OperationMetadata of(std::string runtime_dtype, const OperationDefaults& config);
  static OperationMetadata of(std::string runtime_dtype, std::optional<Mesh> mesh = std::nullopt);

  const Mesh& mesh() const { return mesh_; }
  PartitionManager partition_manager() const { return PartitionManager(partition_axis); }
  // The settings of the operation of that name ("flash_attn2"); nullptr: none, the operation chooses.
  const Value* get_operation_config(std::string_view name) const;
  // `qkv_mni_sharding`: shard keys and values as queries. `softmax_aux_dimensions`: number of dimensions of the
  // attention sinks, if there are any.
  AttnShardingRules get_shardings(const Mode& mode, AttentionLayout layout = AttentionLayout::bthd,
                                  bool qkv_mni_sharding = false,
                                  std::optional<int64_t> softmax_aux_dimensions = std::nullopt) const;

  // A copy with the given fields ("platform", "runtime_dtype", ...) replaced. UserError: no such field, or a value of
  // the wrong type.
  OperationMetadata replace(const Value& fields) const;
  Value to_dict() const;
  static OperationMetadata from_dict(const Value& value);
  std::string to_json() const;
  static OperationMetadata from_json(std::string_view text);
  bool operator==(const OperationMetadata& other) const;

 private:
  Mesh mesh_;
};

// Sets the current mesh of this thread during its lifetime; scopes nest.
class MeshScope {
 public:
  explicit MeshScope(Mesh mesh);
  ~MeshScope();
  MeshScope(const MeshScope&) = delete;
  MeshScope& operator=(const MeshScope&) = delete;
  static const Mesh* current();  // nullptr: none

 private:
  Mesh mesh_;
  const MeshScope* outer_;
};

}  // namespace easydel::mesh
