// The table of attention layouts; OperationMetadata to and from documents.
#include "easydel/mesh/operation_metadata.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::mesh {
namespace {

thread_local const MeshScope* innermost = nullptr;

const char* const batch_word = "__BATCH__";
const char* const query_length_word = "__QUERY_LENGTH__";
const char* const key_length_word = "__KV_LENGTH__";

Value write_mesh(const Mesh& mesh) {
  Value out = Value::map();
  for (size_t i = 0; i < mesh.names().size(); ++i) out.set(mesh.names()[i], Value::integer(mesh.sizes()[i]));
  return out;
}

Mesh read_mesh(const Value& value) {
  if (!value.is_map())
    refuse("OperationMetadata: mesh", config::shown(value) + " is not a mesh", "give sizes as in {dp: 1, tp: 4}");
  Axes names;
  std::vector<int64_t> sizes;
  for (const auto& [name, size] : value.entries) {
    if (std::ranges::find(names, name) != names.end())
      refuse("OperationMetadata: mesh", "axis '" + name + "' appears twice", "name every axis once");
    names.push_back(name);
    sizes.push_back(size.as_int().value_or(0));
    if (sizes.back() < 1)
      refuse("OperationMetadata: mesh", config::shown(size) + " is not a size of axis '" + name + "'",
             "sizes are whole numbers from 1");
  }
  return Mesh(names, sizes);
}

}  // namespace

MeshScope::MeshScope(Mesh mesh) : mesh_(std::move(mesh)), outer_(innermost) { innermost = this; }
MeshScope::~MeshScope() { innermost = outer_; }
const Mesh* MeshScope::current() { return innermost ? &innermost->mesh_ : nullptr; }

AttentionLayout attention_layout_of(std::string_view name) {
  if (name == "bthd") return AttentionLayout::bthd;
  if (name == "bhtd") return AttentionLayout::bhtd;
  if (name == "thd") return AttentionLayout::thd;
  refuse("get_shardings", "Layout '" + std::string(name) + "' is not implemented", "known: bthd, bhtd, thd");
}

AttnShardingRules OperationMetadata::get_shardings(const Mode& mode, AttentionLayout layout, bool qkv_mni_sharding,
                                                   std::optional<int64_t> softmax_aux_dimensions) const {
  const PartitionManager manager = partition_manager();
  const auto resolve = [&](const SemanticAxes& axes) { return manager.resolve(axes, mode); };
  using Words = std::vector<std::string>;
  const Words head = {"__HEAD__"}, head_dim = {"__HEAD_DIM__"}, keys = {"__BIAS_KV_SEQ__"},
              queries = {query_length_word}, whole = {};
  const Words kv_head = {qkv_mni_sharding ? "__HEAD__" : "__KV_HEAD__"},
              kv_dim = {qkv_mni_sharding ? "__HEAD_DIM__" : "__KV_HEAD_DIM__"};
  const auto heads = [&](const char* length, const Words& heads, const Words& dim) {
    switch (layout) {
      case AttentionLayout::bthd:
        return resolve({{batch_word}, {length}, heads, dim});
      case AttentionLayout::bhtd:
        return resolve({{batch_word}, heads, {length}, dim});
      case AttentionLayout::thd:
        return resolve({{batch_word, length}, heads, dim});
    }
    throw Bug("an attention layout without a rule");
  };
  const auto segments = [&](const char* length) {
    return layout == AttentionLayout::thd ? resolve({{batch_word, length}}) : resolve({{batch_word}, {length}});
  };
  AttnShardingRules rules;
  rules.query3d = resolve({{batch_word}, head, head_dim});
  rules.query = rules.output = heads(query_length_word, head, head_dim);
  rules.key = rules.value = heads(key_length_word, kv_head, kv_dim);
  rules.bias = resolve({{batch_word}, {"__BIAS_HEAD_SEQ__"}, queries, keys});
  rules.mask = resolve({{batch_word}, whole, queries, keys});
  rules.q_segment_ids = segments(query_length_word);
  rules.kv_segment_ids = segments(key_length_word);
  if (softmax_aux_dimensions)
    rules.softmax_aux = *softmax_aux_dimensions == 2 ? resolve({whole, {"__KV_HEAD__"}}) : resolve({head});
  return rules;
}

Value write_rules(const AttnShardingRules& rules) {
  Value out = Value::map();
  out.set("query3d", write_spec(rules.query3d));
  out.set("query", write_spec(rules.query));
  out.set("key", write_spec(rules.key));
  out.set("value", write_spec(rules.value));
  out.set("bias", write_spec(rules.bias));
  out.set("mask", write_spec(rules.mask));
  out.set("output", write_spec(rules.output));
  out.set("q_segment_ids", write_spec(rules.q_segment_ids));
  out.set("kv_segment_ids", write_spec(rules.kv_segment_ids));
  out.set("softmax_aux", rules.softmax_aux ? write_spec(*rules.softmax_aux) : Value{});
  return out;
}

OperationMetadata OperationMetadata::of(std::string runtime_dtype, const OperationDefaults& config) {
  OperationMetadata out;
  out.runtime_dtype = std::move(runtime_dtype);
  out.platform = config.platform;
  out.backend = config.backend;
  out.partition_axis = config.partition_axis;
  out.operation_configs = config.operation_configs;
  out.mesh_ = config.mesh;
  return out;
}

OperationMetadata OperationMetadata::from_config(const OperationDefaults& config) {
  OperationMetadata out = of(config.attn_dtype, config);
  out.runtime_softmax_dtype = config.attn_softmax_dtype;
  out.sequence_axis_name = config.sequence_axis_name;
  return out;
}

OperationMetadata OperationMetadata::of(std::string runtime_dtype, std::optional<Mesh> mesh) {
  const Mesh* const in_force = MeshScope::current();
  if (!mesh && !in_force)
    refuse("OperationMetadata",
           "You should pass 'mesh' to `OperationMetadata` or at least create that under mesh context manager",
           "pass a mesh, make a MeshScope, or give the configuration");
  OperationMetadata out;
  out.runtime_dtype = std::move(runtime_dtype);
  out.mesh_ = mesh ? *mesh : *in_force;
  return out;
}

const Value* OperationMetadata::get_operation_config(std::string_view name) const {
  return operation_configs ? operation_configs->find(name) : nullptr;
}

OperationMetadata OperationMetadata::replace(const Value& fields) const {
  if (!fields.is_map())
    refuse("OperationMetadata", config::shown(fields) + " is not a map of fields", "give a map, as {platform: triton}");
  OperationMetadata out = *this;
  for (const auto& [name, value] : fields.entries) {
    const auto word = [&] {
      if (const auto text = value.as_string()) return *text;
      refuse("OperationMetadata: " + name, config::shown(value) + " is not a name", "give a word, as \"float32\"");
    };
    if (name == "runtime_dtype") {
      out.runtime_dtype = word();
    } else if (name == "runtime_softmax_dtype") {
      out.runtime_softmax_dtype = value.is_null() ? std::nullopt : std::optional(word());
    } else if (name == "sequence_axis_name") {
      out.sequence_axis_name = word();
    } else if (name == "platform") {
      out.platform = word();
    } else if (name == "backend") {
      out.backend = word();
    } else if (name == "partition_axis") {
      out.partition_axis = partition_axis_of(value, "OperationMetadata: partition_axis");
    } else if (name == "operation_configs") {
      if (!value.is_null() && !value.is_map())
        refuse("OperationMetadata: operation_configs", config::shown(value) + " is not a map",
               "give settings by the name of the operation");
      out.operation_configs = value.is_null() ? std::nullopt : std::optional(value);
    } else if (name == "mesh") {
      out.mesh_ = read_mesh(value);
    } else {
      const std::vector<std::string> known = {
          "runtime_dtype", "runtime_softmax_dtype", "sequence_axis_name", "platform",
          "backend",       "partition_axis",        "operation_configs",  "mesh"};
      refuse("OperationMetadata", "has no field '" + name + "'", did_you_mean(name, known));
    }
  }
  return out;
}

Value OperationMetadata::to_dict() const {
  Value out = Value::map();
  out.set("runtime_dtype", Value::text(runtime_dtype));
  out.set("runtime_softmax_dtype", runtime_softmax_dtype ? Value::text(*runtime_softmax_dtype) : Value{});
  out.set("sequence_axis_name", Value::text(sequence_axis_name));
  out.set("platform", Value::text(platform));
  out.set("backend", Value::text(backend));
  out.set("partition_axis", config::write(partition_axis.resolved()));
  out.set("operation_configs", operation_configs.value_or(Value{}));
  out.set("mesh", write_mesh(mesh_));
  return out;
}

OperationMetadata OperationMetadata::from_dict(const Value& value) {
  if (!value.is_map() || !value.find("runtime_dtype"))
    refuse("OperationMetadata", "has no runtime_dtype", "give at least {runtime_dtype: float32}");
  return OperationMetadata{}.replace(value);
}

std::string OperationMetadata::to_json() const { return easydel::to_json(to_dict()); }
OperationMetadata OperationMetadata::from_json(std::string_view text) {
  return from_dict(parse_json(text, "OperationMetadata"));
}

bool OperationMetadata::operator==(const OperationMetadata& other) const { return to_dict() == other.to_dict(); }

}  // namespace easydel::mesh
