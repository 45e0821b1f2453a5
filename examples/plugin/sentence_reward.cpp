// A reward from outside the tree: 1 for a completion that ends as a sentence does, and nothing for an empty one.
#include "easydel/elarge/plugin.h"
#include "easydel/elarge/plugin_abi.h"

namespace train = easydel::train;

namespace {

std::optional<double> ends_as_a_sentence(const train::Judged& one) {
  const size_t end = one.completion.find_last_not_of(" \n");
  if (end == std::string_view::npos) return std::nullopt;
  return std::string_view(".!?").find(one.completion[end]) != std::string_view::npos ? 1.0 : 0.0;
}

}  // namespace

extern "C" const char* easydel_plugin_abi() { return easydel::elarge::kPluginAbi; }

extern "C" void easydel_plugin(easydel::elarge::Registry& registry) {
  registry.add_reward("ends_as_a_sentence", ends_as_a_sentence);
}
