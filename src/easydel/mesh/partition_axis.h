// Which axes of the mesh shard which dimension of arrays, by the dimension's meaning: EasyDeL's PartitionAxis.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/mesh/mesh.h"

namespace easydel::mesh {

// One field: unset (it follows from other fields), empty (the dimension is not sharded), or axes.
struct AxisField {
  std::optional<Axes> axes;
  AxisField() = default;
  AxisField(std::nullptr_t) : axes(Axes{}) {}
  AxisField(const char* axis) : axes(Axes{axis}) {}
  AxisField(Axes several) : axes(std::move(several)) {}
  bool given() const { return axes.has_value(); }
  bool operator==(const AxisField&) const = default;
};

}  // namespace easydel::mesh

namespace easydel::config {

// "tp", ["fsdp", "dp"] or null.
template <>
struct Codec<mesh::AxisField> {
  static std::string expects() { return "an axis of the mesh, a list of them, or null"; }
  static Value schema();
  static bool read(const Value& value, mesh::AxisField& out, const At& at);
  static Value write(const mesh::AxisField& field);
};
template <>
inline constexpr bool detail::empty_means_default<mesh::AxisField> = false;

}  // namespace easydel::config

namespace easydel::mesh {

struct PartitionAxis {
  AxisField data_parallel_axis = "dp", fully_sharded_data_parallel_axis = "fsdp", tensor_parallel_axis = "tp",
            sequence_parallel_axis = "sp", expert_parallel_axis = "ep";
  AxisField batch_axis, sequence_axis, query_sequence_axis, head_axis, kv_head_axis, key_sequence_axis,
      hidden_state_axis, mlp_intermediate_axis, vocab_axis, expert_axis;
  AxisField expert_gate_axis = nullptr, attention_dim_axis = nullptr, attention_kv_dim_axis = nullptr,
            bias_head_sequence_axis = nullptr, bias_key_sequence_axis = nullptr;
  AxisField decode_batch_axis, decode_query_sequence_axis = nullptr, decode_head_axis, decode_kv_head_axis,
                               decode_key_sequence_axis, decode_attention_dim_axis = nullptr,
                               decode_attention_kv_dim_axis = nullptr;

  // A copy with every field set: batch over (fsdp, dp), sequences over sp, heads and features over tp, experts over ep,
  // decoding as in training. Derived from the five parallel axes as they are named here.
  PartitionAxis resolved() const;
  // The field of that name; nullptr: no such field.
  const AxisField* find(std::string_view name) const;
  bool operator==(const PartitionAxis&) const = default;

  static constexpr auto doc =
      "Which axes of the mesh shard which dimension; keys that are not given follow from the five parallel axes.";
  template <class P>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&P::data_parallel_axis>("Axis of data parallelism: replicas of the model."),
        field<&P::fully_sharded_data_parallel_axis>(
            "Axis over which parameters are sharded; batches are split over it, too."),
        field<&P::tensor_parallel_axis>("Axis of tensor parallelism: heads and features."),
        field<&P::sequence_parallel_axis>("Axis of sequence parallelism: positions."),
        field<&P::expert_parallel_axis>("Axis of expert parallelism."),
        field<&P::batch_axis>("Rows of a batch; as fsdp and dp."),
        field<&P::sequence_axis>("Positions; as sequence_parallel_axis."),
        field<&P::query_sequence_axis>("Positions of queries; as sequence_parallel_axis."),
        field<&P::head_axis>("Query heads; as tensor_parallel_axis."),
        field<&P::kv_head_axis>("Key and value heads; as tensor_parallel_axis."),
        field<&P::key_sequence_axis>("Positions of keys; as sequence_parallel_axis."),
        field<&P::hidden_state_axis>("Hidden features; as tensor_parallel_axis."),
        field<&P::mlp_intermediate_axis>("Features inside the MLP; as tensor_parallel_axis."),
        field<&P::vocab_axis>("The vocabulary; as tensor_parallel_axis."),
        field<&P::expert_axis>("Experts; as expert_parallel_axis."),
        field<&P::expert_gate_axis>("Outputs of the router."),
        field<&P::attention_dim_axis>("Inside a head."),
        field<&P::attention_kv_dim_axis>("Inside a key or value head."),
        field<&P::bias_head_sequence_axis>("Heads of an attention bias."),
        field<&P::bias_key_sequence_axis>("Keys of an attention bias."),
        field<&P::decode_batch_axis>("While generating: as batch_axis."),
        field<&P::decode_query_sequence_axis>("While generating; null: as query_sequence_axis."),
        field<&P::decode_head_axis>("While generating: as head_axis."),
        field<&P::decode_kv_head_axis>("While generating: as kv_head_axis."),
        field<&P::decode_key_sequence_axis>("While generating: as key_sequence_axis."),
        field<&P::decode_attention_dim_axis>("While generating; null: as attention_dim_axis."),
        field<&P::decode_attention_kv_dim_axis>("Inside a key or value head, also while training."),
    };
  }
};

// From {"batch_axis": ["fsdp", "dp"], ...}; UserError "where: ..." for unknown keys and wrong values.
PartitionAxis partition_axis_of(const Value& value, const std::string& where = "partition_axis");

}  // namespace easydel::mesh
