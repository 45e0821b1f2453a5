// The grid of ranks.
#include "easydel/mesh/mesh.h"

#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::mesh {

const Axes& default_axes() {
  static const Axes axes = {"dp", "fsdp", "ep", "tp", "sp"};
  return axes;
}

const Axes& batch_axes() {
  static const Axes axes = {"dp", "fsdp"};
  return axes;
}

Mesh::Mesh() : Mesh(default_axes(), std::vector<int64_t>(default_axes().size(), 1)) {}

std::string_view name_of(AxisType type) {
  return type == AxisType::automatic ? "Auto" : type == AxisType::explicit_ ? "Explicit" : "Manual";
}

Mesh::Mesh(Axes names, std::vector<int64_t> sizes, AxisType type)
    : names_(std::move(names)), sizes_(std::move(sizes)), type_(type) {
  check(names_.size() == sizes_.size(), "mesh: ", names_.size(), " names for ", sizes_.size(), " sizes");
  check(std::set<std::string>(names_.begin(), names_.end()).size() == names_.size(), "mesh: an axis name twice");
  check(std::all_of(sizes_.begin(), sizes_.end(), [](int64_t s) { return s >= 1; }), "mesh: a size below 1");
}

int64_t Mesh::ranks() const {
  int64_t product = 1;
  for (int64_t size : sizes_) product *= size;
  return product;
}

int64_t Mesh::position(std::string_view axis) const {
  auto found = std::find(names_.begin(), names_.end(), axis);
  return found == names_.end() ? -1 : found - names_.begin();
}

bool Mesh::has(std::string_view axis) const { return position(axis) >= 0; }

int64_t Mesh::size(std::string_view axis) const {
  int64_t at = position(axis);
  return at < 0 ? 1 : sizes_[at];
}

int64_t Mesh::size(const Axes& axes) const {
  int64_t product = 1;
  for (const auto& axis : axes) product *= size(axis);
  return product;
}

std::vector<int64_t> Mesh::coordinates(int64_t rank) const {
  check(rank >= 0 && rank < ranks(), "mesh: rank ", rank, " of ", ranks());
  std::vector<int64_t> result(sizes_.size());
  for (size_t i = sizes_.size(); i-- > 0; rank /= sizes_[i]) result[i] = rank % sizes_[i];
  return result;
}

int64_t Mesh::index(const Axes& axes, int64_t rank) const {
  auto at = coordinates(rank);
  int64_t result = 0;
  for (const auto& axis : axes) {
    if (int64_t i = position(axis); i >= 0) result = result * sizes_[i] + at[i];
  }
  return result;
}

std::vector<int64_t> Mesh::group(const Axes& axes, int64_t rank) const {
  Axes fixed = others(axes);
  int64_t mine = index(fixed, rank);
  std::vector<int64_t> members(size(axes));
  for (int64_t r = 0; r < ranks(); ++r) {
    if (index(fixed, r) == mine) members[index(axes, r)] = r;
  }
  return members;
}

Axes Mesh::parallel(const Axes& axes) const {
  Axes result;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(result), [&](const auto& a) { return size(a) > 1; });
  return result;
}

Axes Mesh::others(const Axes& axes) const {
  Axes result;
  std::copy_if(names_.begin(), names_.end(), std::back_inserter(result),
               [&](const auto& a) { return std::find(axes.begin(), axes.end(), a) == axes.end(); });
  return result;
}

std::string Mesh::describe() const {
  std::vector<std::string> words;
  for (size_t i = 0; i < names_.size(); ++i) words.push_back(str(names_[i], " ", sizes_[i]));
  return join(words, ", ");
}

}  // namespace easydel::mesh
