// Where the marked parts of messages' contents are in a rendered conversation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "easydel/text/render_chat.h"

namespace easydel::data {

// A place of a part; a template that writes a content twice gives two.
struct PartPlace {
  size_t message = 0, part = 0;  // indices in the messages and in the content
  int64_t begin = 0, end = 0;    // in characters of the rendered text
};

// Renders messages with the options of the conversation at hand. UserError: the template refuses them.
using RenderText = std::function<std::string(const Value& messages)>;

// The places of the marked parts with a text of `asked` messages. The template is rendered again with characters of
// private use around each of these parts, so a text that also occurs elsewhere is not mistaken for the part. If the
// template writes something else because of them, a part's place is its text's, which must be in its message once. Of
// a template that cuts blanks off, blanks at the ends of a content are not part of a place.
// `turns`: of the messages without_part_marks(). UserError, without a place: where a part is cannot be known.
std::vector<PartPlace> part_places(const Value& messages, const text::RenderedTurns& turns,
                                   const std::vector<size_t>& asked, const RenderText& render);

}  // namespace easydel::data
