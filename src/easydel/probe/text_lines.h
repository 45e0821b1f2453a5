// Implements `probe render`: one line of JSON in, one line of JSON out. A case that fails returns {"error": "text"}.
// `probe tokenize` answers by text/remote/tokenize_lines.h.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "easydel/text/chat_template.h"

namespace easydel::probe {

// {"context": {...}, "template"?} -> {"output", "generation_spans"?}
class RenderProbe {
 public:
  // Empty: every line has its own "template".
  explicit RenderProbe(const std::filesystem::path& template_file);
  std::string answer(std::string_view line);

 private:
  std::filesystem::path path_;
  std::unique_ptr<const text::ChatTemplate> template_;
  std::map<std::string, text::ChatTemplate, std::less<>> others_;  // templates given in lines
};

}  // namespace easydel::probe
