#include "easydel/models/parameter_plan.h"

#include <algorithm>
#include <set>

#include "easydel/models/family.h"
#include "easydel/nn/placement.h"

namespace easydel::models {
namespace {

bool is_tied(const Value& config) {
  const ConfigReader reader(config, "config.json");
  return reader.boolean("tie_word_embeddings", family_of(reader).tied_by_default);
}

}  // namespace

std::unique_ptr<nn::ParameterTable> plan_parameters(const Value& config, const std::string& where) {
  const ConfigReader reader(config, where);
  auto table = std::make_unique<nn::ParameterTable>();
  nn::Building building{.table = *table, .place = {}, .fill = {}, .weight_policy = {}};
  building.fill = [](nn::Entry& entry, const nn::Initial&, const std::vector<nn::Source>& sources) {
    if (!sources.empty()) entry.source = sources.front();
  };
  family_of(reader).build(reader, building);
  return table;
}

std::vector<EasyDelParameter> easydel_parameters(const Value& config, const nn::ParameterTable& table) {
  std::vector<EasyDelParameter> out;
  const nn::Entry* vocabulary = nullptr;
  bool has_head = false;
  for (const nn::Entry& entry : table.entries()) {
    EasyDelParameter one{entry.easydel_path, entry.shape, nn::default_layout(entry), &entry, false};
    if (entry.role == nn::Role::weight && entry.shape.size() >= 2) {
      std::swap(one.shape[one.shape.size() - 1], one.shape[one.shape.size() - 2]);
      one.spec = mesh::storage_order(one.spec, entry.shape.size());  // the turn is its own inverse
      one.transposed = !entry.source.transposed;
    }
    if (mesh::axes_of(one.spec).empty()) one.spec.clear();
    has_head |= entry.path == "lm_head.weight";
    if (entry.role == nn::Role::embedding && entry.split == nn::Split::vocabulary) vocabulary = &entry;
    out.push_back(std::move(one));
  }
  // EasyDeL keeps the head of a tied model under a name of its own.
  if (vocabulary && !has_head && is_tied(config))
    out.push_back({"lm_head/kernel", {vocabulary->shape[1], vocabulary->shape[0]}, mesh::column_wise(), vocabulary, true});
  return out;
}

std::vector<mesh::Rule> get_partition_rules(const std::vector<EasyDelParameter>& parameters) {
  std::vector<mesh::Rule> rules;
  std::set<std::string> seen;
  for (const EasyDelParameter& parameter : parameters) {
    std::string pattern = "^(?:.*/)?";
    for (size_t at = 0; at <= parameter.path.size();) {
      const size_t end = std::min(parameter.path.find('/', at), parameter.path.size());
      const std::string part = parameter.path.substr(at, end - at);
      const bool number = !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
      pattern += (at > 0 ? "/" : "") + (number ? "\\d+" : part);
      at = end + 1;
    }
    pattern += "$";
    if (seen.insert(pattern).second) rules.push_back({pattern, parameter.spec});
  }
  rules.push_back({".*", {}});
  return rules;
}

}  // namespace easydel::models
