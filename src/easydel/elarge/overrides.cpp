#include "easydel/elarge/overrides.h"

#include "easydel/base/error.h"
#include "easydel/elarge/actions.h"

namespace easydel::elarge {

std::vector<Override> overrides_of(const std::vector<std::string>& set) {
  std::vector<Override> out;
  for (const std::string& text : set) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      refuse("--set " + text, equals == 0 ? "names no key before the '='" : "has no '='",
             "for example --set trainer.learning_rate=1e-4");
    out.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return out;
}

Config configuration(Value document, const std::vector<std::string>& set) {
  config::Problems problems("command line");
  Config config = read_config(std::move(document), problems, overrides_of(set));
  check_built(config, false, problems);
  problems.throw_if_any();
  return config;
}

}  // namespace easydel::elarge
