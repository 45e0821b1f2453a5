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

struct Rendering {
  std::string text;
  std::vector<std::pair<int64_t, int64_t>> generation_spans;  // in characters (code points), of {% generation %} blocks
  bool has_generation_blocks = false;
};

class ChatTemplate {
 public:
  // UserError with line and column: the template cannot be parsed.
  explicit ChatTemplate(std::string_view source, std::string name = "chat template");
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // `context` is a map: messages, tools, documents, add_generation_prompt, bos_token, eos_token ...
  // UserError: the template raises, or a limit is exceeded. Thread-safe.
  Rendering render(const Value& context) const;
  bool marks_generation() const;  // true if it has {% generation %} blocks

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace easydel::text
