// Creates meshes from user input. Errors use numpy's wording, which is what users of EasyDeL search for.
#include <algorithm>
#include <charconv>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/mesh/mesh.h"

namespace easydel::mesh {
namespace {

// Resolves the one -1 in `dims` as numpy's reshape of `count` items does. `things` names the items: ranks or hosts.
std::vector<int64_t> reshape(const std::vector<int64_t>& dims, int64_t count, const std::string& where,
                             std::string_view things) {
  if (std::ranges::count_if(dims, [](int64_t d) { return d < 0; }) > 1)
    refuse(where, "can only specify one unknown dimension", "write -1 for at most one axis");
  std::vector<std::string> words;
  int64_t known = 1;
  bool open = false, too_large = false;
  for (const int64_t dim : dims) {
    words.push_back(dim < 0 ? "newaxis" : std::to_string(dim));
    if (dim < 0)
      open = true;
    else
      too_large |= __builtin_mul_overflow(known, dim, &known);
  }
  if (too_large || known == 0 || (open ? count % known != 0 : count != known)) {
    refuse(where, str("cannot reshape array of size ", count, " into shape (", join(words, ","), ")"),
           str("the product of the dims must ", open ? "divide" : "be", " the number of ", things, ", ", count,
               things == "ranks" ? "; start that many ranks with --nproc, or write -1 for one axis"
                                 : "; or write -1 for one axis"));
  }
  std::vector<int64_t> sizes = dims;
  for (int64_t& size : sizes)
    if (size < 0) size = count / known;
  return sizes;
}

void check_names(size_t dims, const Axes& names, const std::string& where) {
  if (dims != names.size()) {
    refuse(where, str(dims, " dims for ", names.size(), " axis names (", join(names, ", "), ")"),
           "give one dim for each axis name");
  }
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) {
    refuse(where, str("an axis name appears twice in (", join(names, ", "), ")"), "give every axis its own name");
  }
}

int64_t number_of(std::string_view word, const std::string& where) {
  const size_t first = word.find_first_not_of(' ');  // ignores surrounding blanks, as Python's int()
  const size_t last = word.find_last_not_of(' ');
  std::string_view digits = first == std::string_view::npos ? "" : word.substr(first, last - first + 1);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  int64_t out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error != std::errc{} || end != digits.data() + digits.size())
    refuse(where, "'" + std::string(word) + "' is not a size of an axis", "write whole numbers, as in dp:2,tp:-1");
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    out.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return out;
    at = end + 1;
  }
}

}  // namespace

Mesh create_mesh(const MeshShape& shape, std::string_view where) {
  const std::string place(where);
  if (shape.ranks < 1 || shape.hosts < 1)
    refuse(place, str("a mesh of ", shape.ranks, " ranks on ", shape.hosts, " hosts"), "give at least one of each");
  check_names(shape.dims.size(), shape.names, place);
  if (!shape.dcn_dims) return Mesh(shape.names, reshape(shape.dims, shape.ranks, place, "ranks"));
  const std::string across = place == "sharding_axis_dims" ? "sharding_dcn_axis_dims" : "sharding.dcn_axis_dims";
  check_names(shape.dcn_dims->size(), shape.names, across);
  if (shape.ranks % shape.hosts != 0)
    refuse(across, str(shape.ranks, " ranks on ", shape.hosts, " hosts: not as many on each"),
           "start the same number of ranks on every host");
  std::vector<int64_t> sizes = reshape(shape.dims, shape.ranks / shape.hosts, place, "ranks");
  const std::vector<int64_t> hosts = reshape(*shape.dcn_dims, shape.hosts, across, "hosts");
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] *= hosts[i];
  return Mesh(shape.names, sizes);
}

Mesh create_mesh(const std::vector<int64_t>& dims, const Axes& names, int64_t ranks, std::string_view where) {
  return create_mesh({.dims = dims, .names = names, .dcn_dims = {}, .ranks = ranks, .hosts = 1}, where);
}

Mesh parse_mesh_string(std::string_view text, const Axes& names, int64_t ranks) {
  const std::string where = "mesh '" + std::string(text) + "'";
  std::vector<int64_t> dims;
  Axes found;
  if (text.find(':') == std::string_view::npos) {
    for (const std::string_view word : split(text, ',')) dims.push_back(number_of(word, where));
    found = names;
    if (dims.size() != names.size())
      refuse(where, "Number of dimensions and names must match", "give one size for each of " + join(names, ", "));
  } else {
    for (const std::string_view part : split(text, ',')) {
      const size_t colon = part.find(':');
      if (colon == std::string_view::npos)
        refuse(where, "'" + std::string(part) + "' has no name", "write name:size for every axis, or sizes alone");
      const std::string name(part.substr(0, colon));
      if (std::ranges::find(names, name) == names.end())
        refuse(where, "Axis name '" + name + "' not found in provided names: [" + join(names, ", ") + "]",
               did_you_mean(name, names));
      found.push_back(name);
      dims.push_back(number_of(part.substr(colon + 1), where));
    }
    if (std::set<std::string>(found.begin(), found.end()).size() != names.size())
      refuse(where, "Not all axis names were used in 'axis_dims'", "name each of " + join(names, ", ") + " once");
  }
  return create_mesh(dims, found, ranks, where);
}

}  // namespace easydel::mesh
