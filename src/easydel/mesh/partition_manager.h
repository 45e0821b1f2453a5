// From the meaning of dimensions to a layout: EasyDeL's PartitionManager, its words for dimensions ("__BATCH__") and
// modes ("__train__"), and its named layouts. Numerics of none; rules of eformer.escale.partition.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "easydel/mesh/layout.h"
#include "easydel/mesh/partition_axis.h"

namespace easydel::mesh {

inline constexpr std::string_view kTrain = "__train__", kPrefill = "__prefill__", kDecode = "__autoregressive__",
                                  kInsert = "__insert__";
// A word, or the number of a dimension: size 1 there means decoding, any other training.
using Mode = std::variant<std::string, int64_t>;

// Per dimension the words that say what it is: none of them: whole; several: they cut it together.
using SemanticAxes = std::vector<std::vector<std::string>>;

// A layout with a name: ColumnWise, AttnQSharding, ...
struct DynamicShardingAxes {
  std::string_view name;
  SemanticAxes axes;
  Mode mode;
};
const std::vector<DynamicShardingAxes>& named_shardings();
const DynamicShardingAxes& named_sharding(std::string_view name);  // UserError: no such name

// A word of one's own: it follows a field of PartitionAxis, in generation modes another one where that is given.
// UserError: the word is known already (unless `replace`), or a field is not. For the whole process; thread-safe.
void register_token(const std::string& token, const std::string& field,
                    const std::optional<std::string>& generation_field = std::nullopt, bool replace = false);
// Every known word, in EasyDeL's order.
std::vector<std::string> semantic_tokens();

class PartitionManager {
 public:
  explicit PartitionManager(PartitionAxis axis = {}) : axis_(axis.resolved()) {}
  const PartitionAxis& partition_axis() const { return axis_; }

  // The layout of an array whose dimensions mean `axes`. Only __autoregressive__ and __insert__ are generation; any
  // other word is resolved as training. `shape` is needed where `mode` is the number of a dimension, and looked at for
  // that alone: whether sizes divide is corrected_spec's business. UserError: an unknown word, no shape.
  PartitionSpec resolve(const SemanticAxes& axes, const Mode& mode,
                        const std::optional<std::vector<int64_t>>& shape = std::nullopt) const;
  PartitionSpec resolve(const DynamicShardingAxes& named,
                        const std::optional<std::vector<int64_t>>& shape = std::nullopt) const {
    return resolve(named.axes, named.mode, shape);
  }

 private:
  Axes axes_of(const std::string& token, bool generation) const;
  PartitionAxis axis_;
};

// What of a layout an array of `shape` can have on a mesh: as long as the shape; a dimension whose axes the mesh does
// not have, or whose size they do not divide, stays whole (not in part). Axes of one rank stay. Nothing left: empty.
PartitionSpec corrected_spec(const PartitionSpec& spec, const std::vector<int64_t>& shape, const Mesh& mesh);

// {"P": ["tp", ["fsdp", "sp"], null]}, and back.
Value write_spec(const PartitionSpec& spec);
PartitionSpec read_spec(const Value& value, const std::string& where);

}  // namespace easydel::mesh
