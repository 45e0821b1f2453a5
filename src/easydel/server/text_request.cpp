#include "easydel/server/text_request.h"

#include "easydel/base/error.h"

namespace easydel::server {

void TextOnlyFields::settle(config::Keys& keys) {
  if (echo && suffix && !suffix->empty()) keys.refuse("echo", "is given together with suffix", "leave one of them out");
  if (prompt.is_null() || prompt.is_text()) return;
  if (!prompt.is_list() || prompt.items.empty())
    return keys.refuse("prompt", config::shown(prompt) + " is not a text, token ids, or a list of either");
  for (size_t i = 0; i < prompt.items.size(); ++i)
    if (!prompt.items[i].is_text())
      keys.refuse(str("prompt[", i, "]"), config::shown(prompt.items[i]) + " is not a string");
}

config::Section TextRequest::section() {
  return config::flat<&TextRequest::text, &TextRequest::generation>("A request to continue a text.");
}

void TokenizeRequest::settle(config::Keys& keys) {
  if (prompt.has_value() != messages.is_null() && !is_wrong(keys, "prompt") && !is_wrong(keys, "messages"))
    return keys.refuse("prompt", prompt ? "is given together with messages" : "is required, or messages",
                       "give one of them");
  if (prompt || messages.is_null()) return;
  check_messages(messages, keys.path_of("messages"), keys.problems());
  check_tools(tools, keys.path_of("tools"), keys.problems());
}

}  // namespace easydel::server
