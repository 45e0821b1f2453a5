// Reads the fields of PartitionAxis and derives those that are not set.
#include "easydel/mesh/partition_axis.h"

#include "easydel/base/error.h"

namespace easydel::config {

Value Codec<mesh::AxisField>::schema() {
  return detail::schema_any_of(
      {detail::schema_type("string"), detail::schema_list(detail::schema_type("string")), detail::schema_type("null")});
}

bool Codec<mesh::AxisField>::read(const Value& value, mesh::AxisField& out, const At& at) {
  if (value.is_null()) return out = nullptr, true;
  Many<std::string> axes;
  if (!Codec<Many<std::string>>::read(value, axes, at)) return false;
  out = mesh::Axes(axes.begin(), axes.end());
  return true;
}

Value Codec<mesh::AxisField>::write(const mesh::AxisField& field) {
  if (!field.axes || field.axes->empty()) return {};
  if (field.axes->size() == 1) return Value::text(field.axes->front());
  return Codec<std::vector<std::string>>::write(*field.axes);
}

}  // namespace easydel::config

namespace easydel::mesh {

PartitionAxis PartitionAxis::resolved() const {
  PartitionAxis out = *this;
  const auto follow = [](AxisField& field, const AxisField& other) {
    if (!field.given()) field = other;
  };
  if (!out.batch_axis.given()) {
    out.batch_axis.axes.emplace();
    for (const AxisField* part : {&out.fully_sharded_data_parallel_axis, &out.data_parallel_axis})
      if (part->given())
        out.batch_axis.axes->insert(out.batch_axis.axes->end(), part->axes->begin(), part->axes->end());
  }
  for (AxisField* field : {&out.sequence_axis, &out.query_sequence_axis, &out.key_sequence_axis})
    follow(*field, out.sequence_parallel_axis);
  for (AxisField* field :
       {&out.head_axis, &out.kv_head_axis, &out.hidden_state_axis, &out.mlp_intermediate_axis, &out.vocab_axis})
    follow(*field, out.tensor_parallel_axis);
  follow(out.expert_axis, out.expert_parallel_axis);
  follow(out.decode_batch_axis, out.batch_axis);
  follow(out.decode_head_axis, out.head_axis);
  follow(out.decode_kv_head_axis, out.kv_head_axis);
  follow(out.decode_key_sequence_axis, out.key_sequence_axis);
  return out;
}

const AxisField* PartitionAxis::find(std::string_view name) const {
  for (const config::Key& key : config::section_of<PartitionAxis>().keys)
    if (key.name == name) return static_cast<const AxisField*>(key.member(const_cast<PartitionAxis*>(this)));
  return nullptr;
}

PartitionAxis partition_axis_of(const Value& value, const std::string& where) {
  if (!value.is_map() && !value.is_null())
    refuse(where, config::shown(value) + " is not a partition axis", "give keys as in {batch_axis: [fsdp, dp]}");
  PartitionAxis out;
  if (value.is_map()) config::read(value, out, where).throw_if_any();
  return out;
}

}  // namespace easydel::mesh
