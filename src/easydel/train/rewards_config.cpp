#include "easydel/train/rewards_config.h"

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"

namespace easydel::train {

void RewardEntry::settle(config::Keys& keys) {
  const auto needs = [&](RewardType of, bool given, const char* key, const char* example) {
    if (type == of && !given) keys.refuse(key, str("is missing; type ", config::word_of(of), " needs it"), example);
  };
  needs(RewardType::format, pattern.has_value(), "pattern", "for example: \"<think>.*</think>\"");
  needs(RewardType::length, target.has_value(), "target", "give a number of tokens");
  needs(RewardType::contains, !words.empty(), "words", "give a list of texts");
  needs(RewardType::program, !command.empty(), "command", "for example: [python3, reward.py]");
  needs(RewardType::plugin, function.has_value(), "function", "name a function of a plug-in");
  needs(RewardType::http, url.has_value(), "url", "for example: http://127.0.0.1:8000/judge");
  if (url && !url->starts_with("http://") && !url->starts_with("https://"))
    keys.refuse("url", "'" + *url + "' is neither http nor https");
  if (!pattern) return;
  try {
    RegularExpression{*pattern};
  } catch (const InvalidRegularExpression&) {
    keys.refuse("pattern", "'" + *pattern + "' is not a regular expression");
  }
}

}  // namespace easydel::train
