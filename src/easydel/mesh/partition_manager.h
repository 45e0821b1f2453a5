// From the meaning of dimensions to a layout: EasyDeL's PartitionManager, its words for dimensions ("__BATCH__") and
// modes ("__train__"), and its named layouts. Source of the rules: eformer.escale.partition.
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

inline constexpr std::string_view train_mode = "__train__", prefill_mode = "__prefill__",
                                  decode_mode = "__autoregressive__", insert_mode = "__insert__";
// A word, or the index of a dimension: size 1 there means decoding, any other size means training.
using Mode = std::variant<std::string, int64_t>;

// For each dimension the words for its meaning. None: not sharded; several: they shard it together.
using SemanticAxes = std::vector<std::vector<std::string>>;

// A layout with a name: ColumnWise, AttnQSharding, ...
struct DynamicShardingAxes {
  std::string_view name;
  SemanticAxes axes;
  Mode mode;
};
const std::vector<DynamicShardingAxes>& named_shardings();
const DynamicShardingAxes& named_sharding(std::string_view name);  // UserError: no such name

// Adds a word that follows a field of PartitionAxis, and in generation modes `generation_field`, if given. UserError:
// the word already exists (unless `replace`), or a field does not. For the whole process; thread-safe.
void register_token(const std::string& token, const std::string& field,
                    const std::optional<std::string>& generation_field = std::nullopt, bool replace = false);
// Every known word, in EasyDeL's order.
std::vector<std::string> semantic_tokens();

class PartitionManager {
 public:
  explicit PartitionManager(PartitionAxis axis = {}) : axis_(axis.resolved()) {}
  const PartitionAxis& partition_axis() const { return axis_; }

  // The layout of an array whose dimensions mean `axes`. Only __autoregressive__ and __insert__ are generation modes;
  // any other word means training. `shape` is used only if `mode` is the index of a dimension; divisibility is checked
  // by corrected_spec. UserError: an unknown word, or no shape.
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

// The part of a layout that an array of `shape` can have on a mesh: as long as the shape. A dimension is not sharded at
// all if the mesh lacks one of its axes or they do not divide its size. Axes of size 1 are kept. Empty if no dimension
// is sharded.
PartitionSpec corrected_spec(const PartitionSpec& spec, const std::vector<int64_t>& shape, const Mesh& mesh);

// {"P": ["tp", ["fsdp", "sp"], null]}, and back.
Value write_spec(const PartitionSpec& spec);
PartitionSpec read_spec(const Value& value, const std::string& where);

}  // namespace easydel::mesh
