#include "easydel/models/unfit.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ranges>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/models/parameter_plan.h"

namespace easydel::models {
namespace {

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(name, '.')) parts.emplace_back(part.begin(), part.end());
  return parts;
}

bool is_number(const std::string& part) {
  return !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c); });
}

bool is_behind_prefix(const std::string& longer, const std::string& name) {
  return longer.size() > name.size() && longer.ends_with("." + name);
}

// "norm" in "final_norm"; one or two letters do not count.
bool is_within(const std::string& part, const std::string& longer) {
  return part.size() >= 4 && longer.find(part) != std::string::npos;
}

// Whether two sources' tensors hold the same parameter in the same way, in any sizes.
bool alike(const nn::TensorSource& a, const nn::TensorSource& b) {
  return a.stacked == b.stacked && a.packing == b.packing && a.transposed == b.transposed && a.step == b.step &&
         a.dimension == b.dimension && a.shape.size() == b.shape.size() && a.viewed.size() == b.viewed.size();
}

// The shapes that the configuration requires for `tensors`; nullopt if the family refuses it.
std::optional<std::vector<std::vector<int64_t>>> shapes_if_any(const Value& config, const std::string& where,
                                                               const std::vector<Misshapen>& tensors) {
  std::vector<std::vector<int64_t>> out;
  for (const Misshapen& tensor : tensors) out.push_back(tensor.wanted);
  try {
    plan_parameters(config, where, [&](const nn::Entry& entry, const std::vector<nn::TensorSource>& sources) {
      for (size_t i = 0; i < tensors.size(); ++i)
        for (const nn::TensorSource& source : sources)
          if (tensors[i].path == entry.path && alike(source, tensors[i].source))
            out[i] = source.file_shape(entry.shape);
    });
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return out;
}

// Calls with the dotted path and the value of every positive integer, also inside mappings.
void each_size(Value& map, const std::string& prefix, const std::function<void(const std::string&, Value&)>& call) {
  for (auto& [key, value] : map.entries) {
    if (value.is_map()) each_size(value, str(prefix, key, "."), call);
    if (!value.is_text() && value.as_int().value_or(0) > 0) call(prefix + key, value);
  }
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return str("[", join(sizes, ", "), "]");
}

std::string nearest_tensor(const std::string& name, const std::vector<std::string>& known) {
  const std::vector<std::string> parts = parts_of(name);
  std::string wanted;
  std::map<std::string, std::string> others;  // instead of it: the part, and the whole name
  for (const std::string& other : known) {
    if (is_behind_prefix(other, name) || is_behind_prefix(name, other)) return other;
    const std::vector<std::string> theirs = parts_of(other);
    if (theirs.size() != parts.size()) continue;
    const auto [mine, its] = std::ranges::mismatch(parts, theirs);
    if (mine == parts.end() || is_number(*mine) || is_number(*its)) continue;
    if (!std::equal(mine + 1, parts.end(), its + 1)) continue;
    if (is_within(*mine, *its) || is_within(*its, *mine)) return other;
    wanted = *mine;
    others[*its] = other;
  }
  std::vector<std::string> candidates;
  for (const auto& [part, whole] : others) candidates.push_back(part);
  const std::string best = nearest(wanted, candidates);
  return best.empty() ? best : others.at(best);
}

std::vector<std::vector<std::string>> deciding_keys(const Value& config, const std::string& where,
                                                    const std::vector<Misshapen>& tensors) {
  std::vector<std::vector<std::string>> out(tensors.size());
  Value changed = config;
  each_size(changed, "", [&](const std::string& key, Value& value) {
    const Value before = value;
    const int64_t size = *before.as_int();
    // Doubling a size keeps all divisibilities, as far as the family accepts it.
    std::optional<std::vector<std::vector<int64_t>>> planned;
    for (const int64_t other : {2 * size, size / 2, size + 1, int64_t{1}}) {
      if (planned || other < 1 || other == size) continue;
      value = Value::integer(other);
      planned = shapes_if_any(changed, where, tensors);
    }
    value = before;
    for (size_t i = 0; planned && i < tensors.size(); ++i) {
      const Misshapen& tensor = tensors[i];
      const std::vector<int64_t>& shape = (*planned)[i];
      bool decides = shape.size() == tensor.wanted.size() && tensor.found.size() != tensor.wanted.size();
      for (size_t d = 0; d < std::min({shape.size(), tensor.wanted.size(), tensor.found.size()}); ++d)
        decides = decides || (tensor.found[d] != tensor.wanted[d] && shape[d] != tensor.wanted[d]);
      if (decides && shape != tensor.wanted) out[i].push_back(key);
    }
  });
  return out;
}

}  // namespace easydel::models
