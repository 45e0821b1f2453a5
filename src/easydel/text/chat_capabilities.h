// What a chat template supports, detected by rendering small conversations and searching the result for their words.
#pragma once

#include "easydel/text/chat_template.h"

namespace easydel::text {

struct ChatCapabilities {
  // Whether the prompt contains:
  bool conversation = false;     // the user's messages
  bool system_role = false;      // the system message
  bool tools = false;            // the names of tools
  bool tool_calls = false;       // the calls of an earlier answer
  bool tool_results = false;     // the results of tools
  bool keeps_reasoning = false;  // the reasoning of an earlier answer
  // Whether the template:
  bool content_parts = false;       // accepts content as a list of {"type": "text", "text": ...}
  bool content_strings = false;     // accepts content as a string
  bool thinking = false;            // reacts to enable_thinking
  bool generation_prompt = false;   // reacts to add_generation_prompt
  bool generation_markers = false;  // marks the assistant's text with {% generation %}
};

ChatCapabilities capabilities_of(const ChatTemplate& source);

}  // namespace easydel::text
