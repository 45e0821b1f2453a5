#include "easydel/base/byte_count.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

namespace easydel {

std::optional<int64_t> byte_count(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit;
  for (const char* c = end; c != text.data() + text.size(); ++c)
    if (*c != ' ') unit += char(std::toupper(static_cast<unsigned char>(*c)));
  static constexpr std::string_view powers = "KMGT";
  const size_t power =
      unit.empty() || unit == "B" ? 0 : powers.find(unit[0]) + 1;  // 0 also for an unknown unit: npos + 1
  const std::string rest = power ? unit.substr(1) : unit;
  if (error != std::errc() || (power ? rest != "B" && rest != "IB" : !unit.empty() && unit != "B")) return std::nullopt;
  const double bytes = number * std::pow(rest == "IB" ? 1024.0 : 1000.0, double(power));
  if (!(bytes >= 1.0 && bytes < 0x1p62)) return std::nullopt;
  return int64_t(bytes);
}

}  // namespace easydel
