// The ranks of a run as a grid with named axes. Arithmetic only: nothing here knows processes or tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::mesh {

// Names of mesh axes. Several together act as one fused axis; the first varies slowest.
using Axes = std::vector<std::string>;

// EasyDeL's axes, slowest first: data, fully sharded data, expert, tensor and sequence parallel.
const Axes& default_axes();
// The axes over which the rows of a batch are split.
const Axes& batch_axes();

// How a compiler may place arrays along an axis, in JAX's words. Stored for callers; nothing here uses it.
enum class AxisType : uint8_t { automatic, explicit_, manual };
std::string_view name_of(AxisType type);  // "Auto", "Explicit", "Manual"

class Mesh {
 public:
  // One rank: the default axes, each of size 1.
  Mesh();
  // Bug if the names are not unique or a size is below 1; create_mesh checks user input.
  Mesh(Axes names, std::vector<int64_t> sizes, AxisType type = AxisType::automatic);

  const Axes& names() const { return names_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  AxisType axis_type() const { return type_; }  // of every axis
  int64_t ranks() const;
  bool has(std::string_view axis) const;
  int64_t size(std::string_view axis) const;  // 1 if there is no such axis
  int64_t size(const Axes& axes) const;       // of the fused axis

  // Ranks are row-major: the last axis is the fastest.
  std::vector<int64_t> coordinates(int64_t rank) const;  // one per axis
  int64_t index(const Axes& axes, int64_t rank) const;   // index of `rank` along the fused axis
  // The ranks that differ from `rank` only along `axes`, ordered by their index there.
  std::vector<int64_t> group(const Axes& axes, int64_t rank) const;
  // Those of `axes` that have more than one rank, in the same order.
  Axes parallel(const Axes& axes) const;
  // The axes of the mesh that are not in `axes`, in the mesh's order.
  Axes others(const Axes& axes) const;

  std::string describe() const;  // "dp 1, fsdp 2, ep 1, tp 4, sp 1"

 private:
  int64_t position(std::string_view axis) const;  // -1: no such axis
  Axes names_;
  std::vector<int64_t> sizes_;
  AxisType type_ = AxisType::automatic;
};

// The arguments of create_mesh.
struct MeshShape {
  std::vector<int64_t> dims;  // ranks along each axis on one host; at most one -1: the host's remaining ranks
  Axes names = default_axes();
  std::optional<std::vector<int64_t>> dcn_dims = {};  // factor of each axis over hosts; at most one -1
  int64_t ranks = 1;
  int64_t hosts = 1;  // each has ranks / hosts ranks
};
// Arranges the ranks in row-major order. Without dcn_dims, `dims` cover all ranks, whatever their hosts. The rules and
// the wording of errors are those of numpy's reshape (UserError beginning with `where`, the key of the dims).
Mesh create_mesh(const MeshShape& shape, std::string_view where = "sharding_axis_dims");
Mesh create_mesh(const std::vector<int64_t>& dims, const Axes& names, int64_t ranks,
                 std::string_view where = "sharding_axis_dims");

// "dp:2,tp:-1" (every name once, in the order of the text) or "2,-1" (in the order of `names`). UserError.
Mesh parse_mesh_string(std::string_view text, const Axes& names, int64_t ranks);

}  // namespace easydel::mesh
