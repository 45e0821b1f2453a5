#include "easydel/cli/overrides.h"

#include "easydel/base/error.h"
#include "easydel/elarge/actions.h"

namespace easydel::cli {

std::vector<elarge::Override> overrides_of(const std::vector<std::string>& set) {
  std::vector<elarge::Override> out;
  for (const std::string& text : set) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      refuse("--set " + text, "has no '='", "write for example --set trainer.learning_rate=1e-4");
    out.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return out;
}

elarge::Config configuration(Value document, const std::vector<std::string>& set) {
  config::Problems problems("command line");
  elarge::Config config = elarge::read_config(std::move(document), problems, overrides_of(set));
  elarge::check_built(config, false, problems);
  problems.throw_if_any();
  return config;
}

}  // namespace easydel::cli
