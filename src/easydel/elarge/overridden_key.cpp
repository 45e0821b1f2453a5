#include "easydel/elarge/overridden_key.h"

#include <algorithm>
#include <filesystem>

#include "easydel/config/section.h"

namespace easydel::elarge {

std::optional<OverriddenKey> overridden_key(const UserError& error, const Value& overrides) {
  const std::filesystem::path file = error.place.file;
  if (file.filename() != "config.json" && file.extension() != ".gguf") return std::nullopt;
  OverriddenKey out{"base_config.values", {}};
  const Value* section = &overrides;
  for (std::string_view rest = error.where; !rest.empty();) {
    const std::string_view key = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(key.size() + 1, rest.size()));
    const Value* const value = section->find(key);
    if (!value && section == &overrides) return std::nullopt;
    out.path = config::join_path(out.path, key);
    if (!value) return out;  // a missing key: the place of its section
    out.place = value->place;
    section = value;
  }
  if (section == &overrides) return std::nullopt;
  return out;
}

}  // namespace easydel::elarge
