// A model's parameters without their values: their names here and in EasyDeL, and their sharding. For plans of models
// that do not fit into this machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/mesh/rules.h"
#include "easydel/nn/parameter.h"

namespace easydel::models {

// The parameter table of the family that config.json names, with empty shards and whole layouts. Throws UserError like
// load_model. `see` is called with each parameter and all of its possible sources; an entry has the first of them.
std::unique_ptr<nn::ParameterTable> plan_parameters(
    const Value& config, const Where& where,
    const std::function<void(const nn::Entry&, const std::vector<nn::TensorSource>&)>& see = {});

// EasyDeL's view of a parameter: its path and the order of its dimensions ([in, out]).
struct EasyDelParameter {
  std::string path;  // "model/layers/0/self_attn/q_proj/kernel"
  std::vector<int64_t> shape;
  mesh::PartitionSpec spec;  // of its layer, unresolved; empty: whole
  const nn::Entry* entry;    // what holds its values: also of a tied head, the embedding
  bool transposed = false;   // against Hugging Face's tensor
  bool reversed = false;     // all dimensions the other way round: kernels of convolutions
};
std::vector<EasyDelParameter> easydel_parameters(const Value& config, const nn::ParameterTable& table);

// EasyDeL's get_partition_rules: a rule for each kind of parameter (layers' numbers are \d+), then [".*", whole].
std::vector<mesh::Rule> get_partition_rules(const std::vector<EasyDelParameter>& parameters);

}  // namespace easydel::models
