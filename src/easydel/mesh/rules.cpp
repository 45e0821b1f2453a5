// Partition rules: first match wins.
#include "easydel/mesh/rules.h"

#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/base/regular_expression.h"
#include "easydel/config/codec.h"
#include "easydel/mesh/partition_manager.h"

namespace easydel::mesh {
namespace {

// The experts of a layer are one stacked parameter; rules may name single experts ("experts/.*/gate_proj/kernel").
bool matches(const RegularExpression& pattern, std::string_view path) {
  if (pattern.found_in(path)) return true;
  const std::string_view stack = "experts/";
  const size_t at = path.find(stack);
  if (at == std::string_view::npos) return false;
  const std::string one = str(path.substr(0, at + stack.size()), "0/", path.substr(at + stack.size()));
  return pattern.found_in(one);
}

}  // namespace

PartitionRules::PartitionRules(std::vector<Rule> rules, const Mesh& mesh, std::string_view where)
    : where_(where), rules_(std::move(rules)) {
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
    } catch (const InvalidRegularExpression& error) {
      refuse(place, str("'", rule.pattern, "' is not a regular expression: ", error.what()));
    }
  }
}

const PartitionSpec* PartitionRules::find(std::string_view easydel_path) const {
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (matches(patterns_[i], easydel_path)) return &rules_[i].spec;
  }
  return nullptr;
}

std::optional<PartitionSpec> PartitionRules::find(std::string_view easydel_path, size_t dimensions) const {
  const PartitionSpec* const spec = find(easydel_path);
  if (!spec) return std::nullopt;
  if (dimensions >= 2 && spec->size() > dimensions) {
    const auto at = std::ranges::find_if(rules_, [&](const Rule& rule) { return &rule.spec == spec; }) - rules_.begin();
    refuse(str(where_, "[", at, "]"),
           str("the spec has ", spec->size(), " entries, '", easydel_path, "' has ", dimensions, " dimensions"),
           "give at most one entry for each dimension");
  }
  PartitionSpec cut = *spec;
  if (cut.size() > dimensions) cut.resize(dimensions);
  return cut;
}

std::vector<Rule> read_rules(const Value& value, const std::string& where) {
  std::vector<Rule> rules;
  if (value.is_null()) return rules;
  const auto add = [&](const std::string& place, const std::optional<std::string>& pattern, const Value& spec) {
    if (!pattern) refuse(place, "has no pattern", "write [\"self_attn/q_proj/kernel\", [fsdp, tp]]");
    rules.push_back({*pattern, read_spec(spec, place)});
  };
  if (value.is_map()) {
    for (const auto& [pattern, spec] : value.entries) add(where + "." + pattern, pattern, spec);
  } else if (value.is_list()) {
    for (size_t i = 0; i < value.items.size(); ++i) {
      const Value& pair = value.items[i];
      const std::string place = str(where, "[", i, "]");
      if (!pair.is_list() || pair.items.size() != 2)
        refuse(place, config::shown(pair) + " is not a rule", "write [\"self_attn/q_proj/kernel\", [fsdp, tp]]");
      add(place, pair.items[0].as_string(), pair.items[1]);
    }
  } else {
    refuse(where, config::shown(value) + " is not a list of rules",
           "write pairs as [\"self_attn/q_proj/kernel\", [fsdp, tp]]");
  }
  return rules;
}

PartitionSpec match_partition_rules(const std::vector<Rule>& rules, std::string_view easydel_path,
                                    const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  if (shape.empty() || elements == 1) return {};
  for (const Rule& rule : rules) {
    std::optional<RegularExpression> pattern;
    try {
      pattern.emplace(rule.pattern);
    } catch (const InvalidRegularExpression& error) {
      refuse("partition rules", str("'", rule.pattern, "' is not a regular expression: ", error.what()));
    }
    if (!matches(*pattern, easydel_path)) continue;
    PartitionSpec spec = rule.spec;
    if (spec.size() > shape.size()) spec.resize(shape.size());
    return spec;
  }
  refuse("partition rules", "Partition rule not found for param: " + std::string(easydel_path),
         "end the rules with [\".*\", []]");
}

PartitionSpec storage_order(PartitionSpec spec, size_t rank) {
  spec.resize(rank);
  if (rank >= 2) std::swap(spec[rank - 1], spec[rank - 2]);
  return spec;
}

PartitionSpec column_wise() { return {{"fsdp", "sp"}, {"tp"}}; }
PartitionSpec row_wise() { return {{"tp"}, {"fsdp", "sp"}}; }
PartitionSpec vocabulary_wise() { return {{"fsdp", "sp"}, {"tp"}}; }
PartitionSpec expert_column_wise() { return {{"ep", "sp", "fsdp"}, {}, {"tp"}}; }
PartitionSpec expert_row_wise() { return {{"ep", "sp", "fsdp"}, {"tp"}, {}}; }

}  // namespace easydel::mesh
