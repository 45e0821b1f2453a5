// Implements `probe tokenize` and `probe render`: one line of JSON in, one line of JSON out. A case that fails returns
// {"error": "text"}.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "easydel/text/chat_template.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::probe {

// {"text", "pair"?, "add_special_tokens"? = true, "parse_special"? = true, "file_limits"? = false, "masks"? = false}
//                                  -> {"ids", "tokens", "offsets"}, with masks "special_tokens_mask", "type_ids" too
// {"ids", "skip_special_tokens"? = false, "clean_up"?}                     -> {"text"}
class TokenizeProbe {
 public:
  explicit TokenizeProbe(const std::filesystem::path& folder_or_file);  // UserError as text::Tokenizer::load
  std::string answer(std::string_view line) const;

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
};

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
