// Partition rules: first match wins.
#include "easydel/mesh/rules.h"

#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::mesh {

PartitionRules::PartitionRules(std::vector<Rule> rules, const Mesh& mesh, std::string_view where)
    : rules_(std::move(rules)) {
  for (size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    std::string place = str(where, "[", i, "]");
    std::set<std::string> seen;
    for (const auto& axis : axes_of(rule.spec)) {
      if (!mesh.has(axis)) {
        refuse(place, str("the mesh has no axis '", axis, "'"), did_you_mean(axis, mesh.names()));
      }
      if (!seen.insert(axis).second) {
        refuse(place, str("axis '", axis, "' cuts two dimensions of '", rule.pattern, "'"),
               "an axis may stand once in a rule");
      }
    }
    try {
      patterns_.emplace_back(rule.pattern);
    } catch (const std::regex_error& error) {
      refuse(place, str("'", rule.pattern, "' is no regular expression: ", error.what()));
    }
  }
}

const PartitionSpec* PartitionRules::find(std::string_view easydel_path) const {
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (std::regex_search(easydel_path.begin(), easydel_path.end(), patterns_[i])) return &rules_[i].spec;
  }
  return nullptr;
}

PartitionSpec storage_order(PartitionSpec spec, size_t rank) {
  spec.resize(rank);
  if (rank >= 2) std::swap(spec[rank - 1], spec[rank - 2]);
  return spec;
}

PartitionSpec column_wise() { return {{"fsdp", "sp"}, {"tp"}}; }
PartitionSpec row_wise() { return {{"tp"}, {"fsdp", "sp"}}; }
PartitionSpec vocabulary_wise() { return {{"fsdp", "sp"}, {"tp"}}; }
PartitionSpec expert_column_wise() { return {{"ep"}, {"fsdp"}, {"tp"}}; }
PartitionSpec expert_row_wise() { return {{"ep"}, {"tp"}, {"fsdp"}}; }

}  // namespace easydel::mesh
