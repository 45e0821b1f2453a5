#include "easydel/quant/format_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "easydel/base/error.h"

namespace easydel::quant {
namespace {

using kernels::Codes;

struct Row {
  std::string_view name;
  Codes codes;
  int64_t group;                                   // 0: a whole row of the weight
  const kernels::CodeTable& (*table)() = nullptr;  // table4
  int64_t bits() const { return codes == Codes::bytes ? 8 : 4; }
};

// Alphabetical.
constexpr std::array rows{
    Row{"8bit", Codes::bytes, 0}, Row{"a4q", Codes::table4, 64, kernels::q4_table},  Row{"a8bit", Codes::bytes, 0},
    Row{"a8q", Codes::bytes, 32}, Row{"nf4", Codes::table4, 64, kernels::nf4_table},
};

std::string built() {
  std::string out = "built: ";
  for (const Row& row : rows) out += str(&row == &rows.front() ? "" : ", ", row.name);
  return out;
}

}  // namespace

Format format_of(const FormatConfig& config, const std::string& where) {
  const auto row = std::ranges::find(rows, config.method, &Row::name);
  if (row == rows.end()) refuse(where, str("weights of ", config.method, " are not built yet"), built());
  if (config.bits && *config.bits != row->bits())
    refuse(where + ".bits", str(row->name, " has ", row->bits(), " bits, not ", *config.bits), "leave it out");
  const int64_t group = config.group_size.value_or(row->group);
  if (group % 32 != 0)
    refuse(where + ".group_size", str("groups of ", group, " values are not built yet"), "give a multiple of 32");
  return {config.method, {row->codes, group, row->table ? row->table() : kernels::CodeTable{}}};
}

}  // namespace easydel::quant
