// Which axes cut which parameter: rules written against EasyDeL's paths and order ([in, out]), and the defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/mesh/layout.h"

namespace easydel::mesh {

struct Rule {
  std::string pattern;  // a regular expression, searched for in "model/layers/0/self_attn/q_proj/kernel"
  PartitionSpec spec;   // in EasyDeL's order of dimensions
};

class PartitionRules {
 public:
  PartitionRules() = default;
  // UserError beginning with `where`: a pattern that is no regular expression, an axis that the mesh does not have,
  // an axis that cuts two dimensions.
  PartitionRules(std::vector<Rule> rules, const Mesh& mesh, std::string_view where = "sharding.partition_rules");

  bool empty() const { return rules_.empty(); }
  // The spec of the first rule that matches, nullptr where none does.
  const PartitionSpec* find(std::string_view easydel_path) const;
  // The same for a parameter of so many dimensions: of a vector (a norm, a bias) that a rule for matrices matches, the
  // spec is cut short. UserError: a spec for more dimensions than a matrix has.
  std::optional<PartitionSpec> find(std::string_view easydel_path, size_t dimensions) const;

 private:
  std::string where_;
  std::vector<Rule> rules_;
  std::vector<std::regex> patterns_;
};

// Rules as they are written: pairs [pattern, axes of each dimension], or a mapping from pattern to axes. UserError
// "where".
std::vector<Rule> read_rules(const Value& value, const std::string& where = "sharding.partition_rules");

// EasyDeL's match_partition_rules for one parameter: the spec of the first rule whose pattern is found in its path, cut
// to its dimensions; scalars are whole. UserError: none matches, or a pattern is no regular expression.
PartitionSpec match_partition_rules(const std::vector<Rule>& rules, std::string_view easydel_path,
                                    const std::vector<int64_t>& shape);

// Turns a spec for EasyDeL's [..., in, out] into our storage order [..., out, in], which is Hugging Face's.
// `rank` is the number of dimensions of the tensor; below 2 nothing is turned.
PartitionSpec storage_order(PartitionSpec spec, size_t rank);

// EasyDeL's usual layout of a weight, in EasyDeL's order: fsdp (with sp) cuts one dimension, tp the other. Of experts,
// ep and all that is bound to it cut their number.
PartitionSpec column_wise();         // [in, out], out cut by tp
PartitionSpec row_wise();            // [in, out], in cut by tp
PartitionSpec vocabulary_wise();     // [vocabulary, size]
PartitionSpec expert_column_wise();  // [experts, in, out], out cut by tp
PartitionSpec expert_row_wise();     // [experts, in, out], in cut by tp

}  // namespace easydel::mesh
