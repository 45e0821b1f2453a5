#include "easydel/base/text_table.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>

namespace easydel {
namespace {

std::string with_unit(double number, double base, std::initializer_list<const char*> units) {
  auto unit = units.begin();
  while (number >= base && unit + 1 != units.end()) number /= base, ++unit;
  char text[64];
  std::snprintf(text, sizeof text,
                number < 10 && unit != units.begin()    ? "%.2f%s"
                : number < 100 && unit != units.begin() ? "%.1f%s"
                                                        : "%.0f%s",
                number, *unit);
  return text;
}

}  // namespace

std::string count_text(int64_t count) { return with_unit(double(count), 1000, {"", " k", " M", " G", " T"}); }
std::string bytes_text(uint64_t bytes) {
  return with_unit(double(bytes), 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out;
  for (const int64_t size : shape) out += (out.empty() ? "" : " x ") + std::to_string(size);
  return out.empty() ? "scalar" : out;
}

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(i + 1 < row.size() ? widths[i] - row[i].size() + 2 : 0, ' ');
    out += line + "\n";
  }
  return out;
}

}  // namespace easydel
