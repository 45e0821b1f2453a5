// How the arrays of an attention operation lie on the mesh, and what else an operation is told: EasyDeL's
// AttnShardingRules and OperationMetadata.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/mesh/partition_manager.h"

namespace easydel::mesh {

// The order of dimensions: [batch, time, heads, dim], [batch, heads, time, dim], or the tokens of all rows as one list
// [tokens, heads, dim], which batch and time cut together.
enum class AttentionLayout : uint8_t { bthd, bhtd, thd };
AttentionLayout attention_layout_of(std::string_view name);  // UserError: no such layout

struct AttnShardingRules {
  PartitionSpec query3d;  // [batch, heads, dim]
  PartitionSpec query, key, value;
  PartitionSpec bias, mask;  // [batch, heads, queries, keys]
  PartitionSpec output;
  PartitionSpec q_segment_ids, kv_segment_ids;  // [batch, time]; of thd [tokens]
  std::optional<PartitionSpec> softmax_aux;     // [heads] or [heads or sinks, kv heads]
  bool operator==(const AttnShardingRules&) const = default;
};
Value write_rules(const AttnShardingRules& rules);  // {"query3d": {"P": [...]}, ..., "softmax_aux": null}

// What a configuration gives an operation; BaseConfig fills one in.
struct OperationDefaults {
  std::string attn_dtype = "bfloat16", attn_softmax_dtype = "float32";
  std::string sequence_axis_name = "sp", platform = "jax", backend = "cpu";
  PartitionAxis partition_axis = {};
  std::optional<Value> operation_configs = {};  // a map: name of an operation -> its settings
  Mesh mesh = {};
};

struct OperationMetadata {
  std::string runtime_dtype;  // the only one that must be given
  std::optional<std::string> runtime_softmax_dtype = {};
  std::string sequence_axis_name = "sp", platform = "jax", backend = "cpu";
  PartitionAxis partition_axis = {};
  std::optional<Value> operation_configs = {};

  // Everything as the configuration says, also the name of the sequence axis.
  static OperationMetadata from_config(const OperationDefaults& config);
  // What is not given comes from `config`, but for runtime_softmax_dtype and sequence_axis_name. Without a mesh, from
  // the one that is in force (MeshScope). UserError: no mesh anywhere.
  static OperationMetadata of(std::string runtime_dtype, const OperationDefaults& config);
  static OperationMetadata of(std::string runtime_dtype, std::optional<Mesh> mesh = std::nullopt);

  const Mesh& mesh() const { return mesh_; }
  PartitionManager partition_manager() const { return PartitionManager(partition_axis); }
  // The settings for the operation of that name ("flash_attn2"); nullptr: chosen when it runs.
  const Value* get_operation_config(std::string_view name) const;
  // `qkv_mni_sharding`: keys and values are cut as queries are. `softmax_aux_dimensions`: of the sinks or sums that go
  // along, where there are any.
  AttnShardingRules get_shardings(const Mode& mode, AttentionLayout layout = AttentionLayout::bthd,
                                  bool qkv_mni_sharding = false,
                                  std::optional<int64_t> softmax_aux_dimensions = std::nullopt) const;

  // A copy with fields by their names ("platform", "runtime_dtype", ...) set anew. UserError: no such field, or a value
  // of another kind.
  OperationMetadata replace(const Value& fields) const;
  Value to_dict() const;
  static OperationMetadata from_dict(const Value& value);
  std::string to_json() const;
  static OperationMetadata from_json(std::string_view text);
  bool operator==(const OperationMetadata& other) const;

 private:
  Mesh mesh_;
};

// A mesh that is in force for this thread while this lives; they nest.
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
