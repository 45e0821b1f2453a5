// Recorded cases of models' parameters: model_partition_specs, model_param_mapping. Families that are not built are
// reported as such.
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/mesh/partition_manager.h"
#include "easydel/models/family.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/probe/vectors.h"
#include "easydel/probe/vectors_models.h"

namespace easydel::probe {
namespace {

struct Plan {
  std::unique_ptr<nn::ParameterTable> table;
  std::vector<models::EasyDelParameter> parameters;
};

Plan plan_of(const VectorCase& vector) {
  const Value config = model_config_of(vector);
  Plan plan{models::plan_parameters(config, vector.id), {}};
  plan.parameters = models::easydel_parameters(config, *plan.table);
  return plan;
}

std::string dotted(std::string path) {
  std::ranges::replace(path, '/', '.');
  return path;
}

// A parameter without axes was recorded as one whole dimension.
mesh::PartitionSpec recorded(const mesh::PartitionSpec& spec) { return spec.empty() ? mesh::PartitionSpec{{}} : spec; }

Value partition_specs(const VectorCase& vector, const VectorFile&) {
  const Plan plan = plan_of(vector);
  Value shapes = Value::map(), specs = Value::map(), changed = Value::map();
  for (const auto& parameter : plan.parameters) {
    shapes.set(dotted(parameter.path), list_of(parameter.shape));
    specs.set(dotted(parameter.path), mesh::write_spec(recorded(parameter.spec)));
  }
  if (const Value* const meshes = vector.body.find("changed_by_correction"))
    for (const auto& [sizes, unused] : meshes->entries) {
      const mesh::Mesh mesh = mesh::create_mesh(integers_of(parse_json(sizes)), mesh::default_axes(), [&] {
        int64_t ranks = 1;
        for (const int64_t size : integers_of(parse_json(sizes))) ranks *= size;
        return ranks;
      }());
      Value& of_mesh = changed.set(sizes, Value::map());
      for (const auto& parameter : plan.parameters) {
        const mesh::PartitionSpec before = recorded(parameter.spec),
                                  after = mesh::corrected_spec(before, parameter.shape, mesh);
        if (before != after) of_mesh.set(dotted(parameter.path), mesh::write_spec(after));
      }
    }
  Value out = Value::map();
  out.set("params", std::move(shapes));
  out.set("partition_specs", std::move(specs));
  out.set("changed_by_correction", std::move(changed));
  return out;
}

Value expected_specs(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  for (const char* key : {"params", "partition_specs", "changed_by_correction"})
    if (const Value* const recorded = vector.body.find(key)) out.set(key, *recorded);
  return out;
}

// For tensors with equal values, the recordings name the first in alphabetical order.
Value param_mapping(const VectorCase& vector, const VectorFile&) {
  const Plan plan = plan_of(vector);
  Value out = Value::map();
  for (const auto& parameter : plan.parameters) {
    const nn::TensorSource& source = parameter.entry->source;
    if (parameter.reversed || source.stacked || source.end != 0 ||
        source.tensors.size() != 1) {  // no file holds it as one tensor
      out.set(dotted(parameter.path), list_of(std::vector<std::string>{"(stacked or split tensors)", "see shapes"}));
      continue;
    }
    const bool shared = std::ranges::count(plan.parameters, parameter.entry, &models::EasyDelParameter::entry) > 1;
    Value pair = Value::list();
    pair.items = {Value::text(shared ? std::min<std::string>("lm_head.weight", source.tensors[0]) : source.tensors[0]),
                  Value::text(parameter.transposed ? "transpose" : "same")};
    out.set(dotted(parameter.path), std::move(pair));
  }
  return out;
}

Value expected_mapping(const VectorCase& vector, const VectorFile&) {
  const Value* const mapping = vector.body.find("mapping");
  if (!mapping) refuse(vector.id, "has no \"mapping\"");
  return *mapping;
}

}  // namespace

// "Qwen3MoeConfig" is the class of model_type "qwen3_moe".
Value model_config_of(const VectorCase& vector) {
  const Value* const name = vector.body.find("hf_config_class");
  const Value* const keys = vector.body.find("hf_config_kwargs");
  if (!name || !keys || !keys->is_map()) refuse(vector.id, "has no hf_config_class and hf_config_kwargs");
  std::string plain = name->scalar.substr(0, name->scalar.rfind("Config"));
  std::ranges::transform(plain, plain.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const models::Family& family : models::families()) {
    std::string type(family.model_type);
    std::erase(type, '_');
    if (type != plain) continue;
    Value config = *keys;
    config.set("model_type", Value::text(std::string(family.model_type)));
    return config;
  }
  throw VectorNotBuilt("the family of " + name->scalar);
}

VectorKind model_partition_specs_vectors() {
  return {.name = "model_partition_specs", .answer = partition_specs, .expected = expected_specs};
}
VectorKind model_param_mapping_vectors() {
  return {.name = "model_param_mapping", .answer = param_mapping, .expected = expected_mapping};
}

}  // namespace easydel::probe
