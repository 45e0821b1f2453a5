// Where the assistant's messages stand in a rendered conversation, for templates without {% generation %} blocks. The
// template's own loop over the messages says which text belongs to which message; what a generation prompt supplies is
// not the assistant's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/chat_template.h"
#include "easydel/text/output/output_parser.h"

namespace easydel::text {

bool is_assistant(const Value& message);  // its role is assistant or model

// Renders messages with the pieces. UserError: the template refuses them.
using TraceTemplate = std::function<Rendering(const Value& messages, bool add_generation_prompt)>;

// The header that every turn of the assistant begins with and that the generation prompt supplies, found by rendering
// short conversations. Empty: no turn begins with the whole generation prompt, or a turn opens several messages with
// it; then all of a turn is the assistant's. Reasoning that the prompt opens (`format`) belongs to the turn, and so
// does white space at the header's end if the template writes it together with an answer.
std::string assistant_header(const TraceTemplate& trace, const OutputFormat& format);

using Spans = std::vector<std::pair<int64_t, int64_t>>;  // in characters

// One span or more for each of the assistant's messages in `rendered`, which was traced. Nothing: the text of a message
// is not where the template's loop over messages is, so it cannot be known. `ends`: the text ends with the last
// message, not with a generation prompt. `eos`: the end token's text; blanks behind it belong to what follows.
std::optional<Spans> assistant_spans(const Value& messages, const Rendering& rendered, bool ends,
                                     const std::string& header, const std::string& eos);

}  // namespace easydel::text
