#include "easydel/models/lora_targets.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"

namespace easydel::models {

std::vector<std::string> lora_targets(const nn::ParameterTable& parameters, const std::string& pattern, int64_t rank) {
  if (rank < 1) refuse("lora.r", str(rank, " is not a rank"), "give a whole number of at least 1");
  std::optional<RegularExpression> wanted;
  try {
    wanted.emplace(pattern);
  } catch (const InvalidRegularExpression&) {
    refuse("lora pattern", "'" + pattern + "' is not a regular expression", "for example: \"q_proj|v_proj\"");
  }
  std::vector<std::string> out;
  for (const nn::Entry& entry : parameters.entries()) {
    if (!nn::is_linear(entry)) continue;
    const std::string layer = nn::layer_name(entry);
    if (wanted->found_in(layer)) out.push_back(layer);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace easydel::models
