// How a tensor is sharded over a mesh: which axes shard which dimension, and which slice a rank holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/mesh/mesh.h"

namespace easydel::mesh {

// For each dimension the axes that shard it (fused; the first varies slowest). Dimensions with an empty list, and those
// past the end, are not sharded.
using PartitionSpec = std::vector<Axes>;

// A part of a tensor: [begin, begin + size) in each dimension.
struct Slice {
  std::vector<int64_t> begin, size;
  bool operator==(const Slice&) const = default;
};

// The spec that a tensor of `shape` can have: as long as the shape, without axes of size 1. A dimension is not sharded
// if the mesh lacks one of its axes or they do not divide its size; each such dimension increments `dropped`, if given
// (axes of size 1 do not count).
PartitionSpec resolve(const PartitionSpec& spec, const std::vector<int64_t>& shape, const Mesh& mesh,
                      int64_t* dropped = nullptr);

// The slice that `rank` holds of a tensor sharded by a resolved spec.
Slice slice_of(const PartitionSpec& resolved, const std::vector<int64_t>& shape, const Mesh& mesh, int64_t rank);

// All axes that shard some dimension, in the order of the dimensions.
Axes axes_of(const PartitionSpec& spec);

std::string describe(const PartitionSpec& spec);  // "(fsdp, tp)", "((fsdp, sp), -)"

}  // namespace easydel::mesh
