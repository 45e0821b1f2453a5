// Chat templates: a Jinja interpreter for the features that Hugging Face templates use, with transformers' environment
// (trim_blocks, lstrip_blocks, tojson, raise_exception, strftime_now, {% generation %}). Time and memory are bounded;
// it reads no files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::text {

// A part of the text that one statement of the template wrote.
struct WrittenPiece {
  int64_t begin = 0, end = 0;  // in characters (code points)
  int64_t message = -1;        // index of the message that the template's loop was at; -1: none
};

struct Rendering {
  std::string text;
  std::vector<std::pair<int64_t, int64_t>> generation_spans;  // in characters (code points), of {% generation %} blocks
  bool has_generation_blocks = false;
  std::vector<WrittenPiece> pieces;  // if asked for: of the whole text, in its order
};

class ChatTemplate {
 public:
  // UserError with line and column: the template cannot be parsed.
  explicit ChatTemplate(std::string_view source, std::string name = "chat template");
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // `context` is a map: messages, tools, documents, add_generation_prompt, bos_token, eos_token ...
  // `traced`: also returns the pieces. UserError: the template raises, or a limit is exceeded. Thread-safe.
  Rendering render(const Value& context, bool traced = false) const;
  bool marks_generation() const;  // true if it has {% generation %} blocks

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace easydel::text
