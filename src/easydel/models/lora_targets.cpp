#include "easydel/models/lora_targets.h"

#include <algorithm>
#include <regex>

#include "easydel/base/error.h"

namespace easydel::models {

std::vector<std::string> lora_targets(const nn::ParameterTable& parameters, const std::string& pattern, int64_t rank) {
  if (rank < 1) refuse("lora.r", str(rank, " is not a rank"), "give a whole number of at least 1");
  std::regex wanted;
  try {
    wanted = std::regex(pattern);
  } catch (const std::regex_error&) {
    refuse("lora pattern", "'" + pattern + "' is not a regular expression", "for example: \"q_proj|v_proj\"");
  }
  std::vector<std::string> out;
  for (const nn::Entry& entry : parameters.entries()) {
    if (!nn::is_linear(entry)) continue;
    const std::string layer = nn::layer_name(entry);
    if (std::regex_search(layer, wanted)) out.push_back(layer);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace easydel::models
