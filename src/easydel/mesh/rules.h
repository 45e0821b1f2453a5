// Which axes shard which parameter: rules written for EasyDeL's paths and dimension order ([in, out]), and the
// defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/regular_expression.h"
#include "easydel/mesh/layout.h"

namespace easydel::mesh {

struct Rule {
  std::string pattern;  // regular expression, searched in "model/layers/0/self_attn/q_proj/kernel"
  PartitionSpec spec;   // in EasyDeL's order of dimensions
};

class PartitionRules {
 public:
  PartitionRules() = default;
  // UserError beginning with `where`: an invalid regular expression, an axis that the mesh does not have, or an axis
  // that shards two dimensions.
  PartitionRules(std::vector<Rule> rules, const Mesh& mesh, std::string_view where = "sharding.partition_rules");

  bool empty() const { return rules_.empty(); }
  // The spec of the first rule that matches; nullptr: none does.
  const PartitionSpec* find(std::string_view easydel_path) const;
  // The same for a parameter with so many dimensions: if a rule for matrices matches a vector (a norm, a bias), the
  // spec is truncated. UserError: a spec has too many dimensions.
  std::optional<PartitionSpec> find(std::string_view easydel_path, size_t dimensions) const;

 private:
  std::string where_;
  std::vector<Rule> rules_;
  std::vector<RegularExpression> patterns_;
};

// Reads rules: pairs [pattern, axes of each dimension], or a mapping from pattern to axes. UserError "where: ...".
std::vector<Rule> read_rules(const Value& value, const std::string& where = "sharding.partition_rules");

// EasyDeL's match_partition_rules for one parameter: the spec of the first rule whose pattern is found in its path,
// truncated to its dimensions; scalars are not sharded. UserError: none matches, or an invalid regular expression.
PartitionSpec match_partition_rules(const std::vector<Rule>& rules, std::string_view easydel_path,
                                    const std::vector<int64_t>& shape);

// Transposes a spec for EasyDeL's [..., in, out] to our storage order [..., out, in], which is Hugging Face's.
// `rank` is the tensor's number of dimensions; below 2 the spec is returned unchanged.
PartitionSpec storage_order(PartitionSpec spec, size_t rank);

// EasyDeL's default layouts of weights, in EasyDeL's order: fsdp (with sp) shards one dimension, tp the other. Stacked
// experts are sharded over ep and the axes bound to it.
PartitionSpec column_wise();         // [in, out], out sharded over tp
PartitionSpec row_wise();            // [in, out], in sharded over tp
PartitionSpec vocabulary_wise();     // [vocabulary, size]
PartitionSpec expert_column_wise();  // [experts, in, out], out sharded over tp
PartitionSpec expert_row_wise();     // [experts, in, out], in sharded over tp

}  // namespace easydel::mesh
