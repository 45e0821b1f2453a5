#include "easydel/elarge/override_error.h"

#include <algorithm>

namespace easydel::elarge {

std::optional<OverrideError> override_error(std::string_view text, const Value& overrides) {
  static constexpr std::string_view file = "config.json: ";
  const size_t begin = text.find(file), line = text.find('\n');
  if (begin == std::string_view::npos || begin > line) return std::nullopt;
  std::string_view what =
      text.substr(begin + file.size(), line == std::string_view::npos ? line : line - begin - file.size());
  OverrideError out{"base_config.values", {}, {}, {}};
  const Value* value = &overrides;
  for (size_t colon; (colon = what.find(": ")) != std::string_view::npos; what.remove_prefix(colon + 2)) {
    const Value* const inside = value->find(what.substr(0, colon));
    if (!inside && value == &overrides) return std::nullopt;
    if (!inside && (!value->is_map() || what.substr(0, colon).find(' ') != std::string_view::npos)) break;  // words
    out.path += "." + std::string(what.substr(0, colon));
    if (!inside) {  // a key that is missing
      what.remove_prefix(colon + 2);
      break;
    }
    out.place = inside->place;
    value = inside;
  }
  if (value == &overrides) return std::nullopt;
  out.what = what;
  if (line != std::string_view::npos) {
    const std::string_view rest = text.substr(line + 1);
    out.remedy = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  return out;
}

}  // namespace easydel::elarge
