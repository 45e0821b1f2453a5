// Chat templates are not built yet: every use is refused.
#include "easydel/text/chat_template.h"

#include "easydel/base/error.h"

namespace easydel::text {

struct ChatTemplate::Impl {};

ChatTemplate::ChatTemplate(std::string_view, std::string name) {
  refuse(name, "chat templates are not built yet", "use 'prompt' and 'completion' instead of 'messages'");
}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Rendering ChatTemplate::render(const Value&) const { return {}; }

}  // namespace easydel::text
