// What a chat template can do, found out by rendering it with small conversations and looking for what was put in.
#pragma once

#include "easydel/text/chat_template.h"

namespace easydel::text {

struct ChatCapabilities {
  bool conversation = false;        // it writes what the user says
  bool system_role = false;         // what a system message says is in the prompt
  bool tools = false;               // so are the names of tools
  bool tool_calls = false;          // and the calls of an earlier answer
  bool tool_results = false;        // and what a tool answered
  bool content_parts = false;       // content may be a list of {"type": "text", "text": ...}
  bool content_strings = false;     // or a string
  bool thinking = false;            // enable_thinking makes a difference
  bool keeps_reasoning = false;     // the reasoning of an earlier answer is written again
  bool generation_prompt = false;   // add_generation_prompt makes a difference
  bool generation_markers = false;  // {% generation %}: it says itself what the assistant said
};

ChatCapabilities capabilities_of(const ChatTemplate& source);

}  // namespace easydel::text
