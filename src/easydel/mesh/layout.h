// How a tensor is cut over a mesh: which axes cut which dimension, and which part a rank then holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/mesh/mesh.h"

namespace easydel::mesh {

// Per dimension the axes that cut it (fused, the first the slowest); an empty list: whole. Dimensions past its end
// are whole.
using PartitionSpec = std::vector<Axes>;

// A part of a tensor: [begin, begin + size) in each dimension.
struct Slice {
  std::vector<int64_t> begin, size;
  bool operator==(const Slice&) const = default;
};

// The spec that can be used for a tensor of `shape`: as long as the shape, without axes of one rank; a dimension whose
// axes the mesh does not have, or whose size they do not divide, stays whole. `dropped`, where given, is raised by one
// for each such dimension (axes of one rank do not count).
PartitionSpec resolve(const PartitionSpec& spec, const std::vector<int64_t>& shape, const Mesh& mesh,
                      int64_t* dropped = nullptr);

// What `rank` holds of a tensor laid out by a resolved spec.
Slice slice_of(const PartitionSpec& resolved, const std::vector<int64_t>& shape, const Mesh& mesh, int64_t rank);

// All axes that cut some dimension, in the order of the dimensions.
Axes axes_of(const PartitionSpec& spec);

std::string describe(const PartitionSpec& spec);  // "(fsdp, tp)", "((fsdp, sp), -)"

}  // namespace easydel::mesh
