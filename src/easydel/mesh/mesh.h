// The ranks of a run as a grid with named axes. Arithmetic only: nothing here knows processes or tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::mesh {

// Names of mesh axes; where several stand together they act as one fused axis, the first the slowest.
using Axes = std::vector<std::string>;

// The axes of EasyDeL, slowest first: data, fully sharded data, expert, tensor and sequence parallel.
const Axes& default_axes();
// The axes that rows of a batch are divided over.
const Axes& batch_axes();

// How a compiler may lay arrays over an axis, in JAX's words. Carried for who asks; nothing here acts on it.
enum class AxisType : uint8_t { automatic, explicit_, manual };
std::string_view name_of(AxisType type);  // "Auto", "Explicit", "Manual"

class Mesh {
 public:
  // One rank: the default axes, each of size 1.
  Mesh();
  // Bug where the names are not unique or a size is below 1; create_mesh checks what users write.
  Mesh(Axes names, std::vector<int64_t> sizes, AxisType type = AxisType::automatic);

  const Axes& names() const { return names_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  AxisType axis_type() const { return type_; }  // of every axis
  int64_t ranks() const;
  bool has(std::string_view axis) const;
  int64_t size(std::string_view axis) const;  // 1 where there is no such axis
  int64_t size(const Axes& axes) const;       // of the fused axis

  // Ranks are row-major: the last axis is the fastest.
  std::vector<int64_t> coordinates(int64_t rank) const;  // one per axis
  int64_t index(const Axes& axes, int64_t rank) const;   // of `rank` along the fused axis
  // The ranks that differ from `rank` only along `axes`, in the order of their index there.
  std::vector<int64_t> group(const Axes& axes, int64_t rank) const;
  // The axes of `axes` that have more than one rank; in the same order.
  Axes wide(const Axes& axes) const;
  // The axes of the mesh that are not among `axes`, in the mesh's order.
  Axes others(const Axes& axes) const;

  std::string describe() const;  // "dp 1, fsdp 2, ep 1, tp 4, sp 1"

 private:
  int64_t position(std::string_view axis) const;  // -1: not there
  Axes names_;
  std::vector<int64_t> sizes_;
  AxisType type_ = AxisType::automatic;
};

// What a mesh is made of.
struct MeshShape {
  std::vector<int64_t> dims;  // ranks along each axis on one host; at most one -1: what is left of the host's ranks
  Axes names = default_axes();
  std::optional<std::vector<int64_t>> dcn_dims = {};  // by how much each axis grows over hosts; at most one -1
  int64_t ranks = 1;
  int64_t hosts = 1;  // ranks / hosts ranks are on each
};
// Lays the ranks out, row-major. Without dcn_dims all ranks are laid out by `dims`, whatever their hosts. Rules and
// words of the errors are numpy's reshape's (UserError beginning with `where`, the key that the dims come from).
Mesh create_mesh(const MeshShape& shape, std::string_view where = "sharding_axis_dims");
Mesh create_mesh(const std::vector<int64_t>& dims, const Axes& names, int64_t ranks,
                 std::string_view where = "sharding_axis_dims");

// "dp:2,tp:-1" (every name once, in the order of the text) or "2,-1" (in the order of `names`). UserError.
Mesh parse_mesh_string(std::string_view text, const Axes& names, int64_t ranks);

}  // namespace easydel::mesh
