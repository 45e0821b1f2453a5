#include "easydel/quant/format_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "easydel/base/error.h"
#include "easydel/quant/four_bits.h"

namespace easydel::quant {
namespace {

using kernels::Codes;

struct Row {
  std::string_view name;
  Codes codes;
  int64_t group;                                   // 0: a whole row of the weight
  const kernels::CodeTable& (*table)() = nullptr;  // table4
  int64_t min_bits = 8, max_bits = 8, usual_bits = 8;
  int64_t unit = 32;      // groups are multiples of it
  bool is_fixed = false;  // the group is the format's own
};

const kernels::CodeTable& fp4_table() { return table_of(FourBits::fp4); }

constexpr Row four_bits(std::string_view name, int64_t group, const kernels::CodeTable& (*table)()) {
  return {name, Codes::table4, group, table, 4, 4, 4};
}
constexpr Row fixed(std::string_view name, int64_t group, int64_t bits) {
  return {name, Codes::bytes, group, nullptr, bits, bits, bits, 1, true};
}

// Alphabetical.
constexpr std::array rows{Row{"8bit", Codes::bytes, 0},
                          Row{"a4q", Codes::nibbles, 64, kernels::q4_table, 4, 4, 4},
                          Row{"a8bit", Codes::bytes, 0},
                          Row{"a8q", Codes::bytes, 32},
                          Row{"affine", Codes::bytes, 64, nullptr, 2, 8, 4, 16},
                          fixed("binary", 0, 1),
                          four_bits("fp4", 64, fp4_table),
                          fixed("mxfp4", 32, 4),
                          fixed("mxfp8", 32, 8),
                          four_bits("nf4", 64, kernels::nf4_table),
                          fixed("nvfp4", 16, 4),
                          fixed("nvfp8", 16, 8),
                          fixed("ternary", 0, 2)};

std::string built() {
  std::string out = "built: ";
  for (const Row& row : rows) out += str(&row == &rows.front() ? "" : ", ", row.name);
  return out;
}

}  // namespace

bool has_fixed_groups(std::string_view method) {
  const auto row = std::ranges::find(rows, method, &Row::name);
  return row != rows.end() && row->is_fixed;
}

Format format_of(const FormatConfig& config, const std::string& where) {
  const auto row = std::ranges::find(rows, config.method, &Row::name);
  if (row == rows.end()) refuse(where, str("weights of ", config.method, " are not built yet"), built());
  const int64_t bits = config.bits.value_or(row->usual_bits);
  if (bits < row->min_bits || bits > row->max_bits) {
    if (row->min_bits == row->max_bits)
      refuse(where + ".bits", str(row->name, " has ", row->usual_bits, " bits, not ", bits), "leave it out");
    refuse(where + ".bits", str(row->name, " has ", row->min_bits, " to ", row->max_bits, " bits, not ", bits),
           str("choose one of these; the default is ", row->usual_bits));
  }
  const int64_t group = config.group_size.value_or(row->group);
  if (row->is_fixed && group != row->group)
    refuse(where + ".group_size",
           row->group == 0 ? str(row->name, " has no groups")
                           : str(row->name, " has groups of ", row->group, ", not ", group),
           "leave it out");
  if (group % row->unit != 0)
    refuse(where + ".group_size", str("groups of ", group, " values are not built yet"),
           str("give a multiple of ", row->unit));
  const std::string name = row->min_bits == row->max_bits ? config.method : str(config.method, bits);
  return {name, {row->codes, group, row->table ? row->table() : kernels::CodeTable{}}};
}

}  // namespace easydel::quant
