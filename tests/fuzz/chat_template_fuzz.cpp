// Any bytes as a chat template, rendered with a small conversation.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  static const Value context = parse_json(
      R"({"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "H\u00e9 <there>"},
          {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.5}}}]}],
          "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "add_generation_prompt": true,
          "bos_token": "<s>", "eos_token": "</s>", "n": 3, "big": 9007199254740993, "items": {"a": [1, 2, {"b": []}]}})");
  try {
    text::ChatTemplate source({reinterpret_cast<const char*>(data), size}, "fuzz");
    source.render(context);
  } catch (const UserError&) {
  }
  return 0;
}
