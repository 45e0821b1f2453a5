// Arithmetic of sharded tensors.
#include "easydel/mesh/layout.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::mesh {

PartitionSpec resolve(const PartitionSpec& spec, const std::vector<int64_t>& shape, const Mesh& mesh,
                      int64_t* dropped) {
  PartitionSpec result(shape.size());
  for (size_t i = 0; i < std::min(spec.size(), shape.size()); ++i) {
    bool known = std::all_of(spec[i].begin(), spec[i].end(), [&](const auto& axis) { return mesh.has(axis); });
    if (known && shape[i] % mesh.size(spec[i]) == 0) {
      result[i] = mesh.parallel(spec[i]);
    } else if (dropped) {
      ++*dropped;
    }
  }
  return result;
}

Slice slice_of(const PartitionSpec& resolved, const std::vector<int64_t>& shape, const Mesh& mesh, int64_t rank) {
  check(resolved.size() == shape.size(), "layout: ", resolved.size(), " entries for ", shape.size(), " dimensions");
  Slice slice;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t parts = mesh.size(resolved[i]);
    check(shape[i] % parts == 0, "layout: ", shape[i], " does not divide by ", parts);
    slice.size.push_back(shape[i] / parts);
    slice.begin.push_back(mesh.index(resolved[i], rank) * slice.size.back());
  }
  return slice;
}

Axes axes_of(const PartitionSpec& spec) {
  Axes result;
  for (const auto& axes : spec) result.insert(result.end(), axes.begin(), axes.end());
  return result;
}

std::string describe(const PartitionSpec& spec) {
  std::vector<std::string> words;
  for (const auto& axes : spec) {
    words.push_back(axes.empty() ? "-" : axes.size() == 1 ? axes[0] : "(" + join(axes, ", ") + ")");
  }
  return "(" + join(words, ", ") + ")";
}

}  // namespace easydel::mesh
