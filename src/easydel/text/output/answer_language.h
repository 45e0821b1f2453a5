// What an answer must look like so that its calls and its content keep to a request: a language for text/constrain in
// the model's own format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/constrain/language.h"
#include "easydel/text/output/output_parser.h"

namespace easydel::text {

struct AnswerRules {
  // The functions that may be called, as {"name", "parameters", "strict"} or with these in "function".
  std::vector<const Value*> tools = {};
  bool required = false;                            // the answer is at least one call
  bool parallel = true;                             // it may have several
  std::optional<constrain::Language> content = {};  // what content must be
  // As in OutputOptions.
  std::string begun = {};
  OutputOptions::Thinking thinking = OutputOptions::Thinking::unset;
};

// nullopt: the answer is free. UserError: the format's calls or reasoning cannot be constrained, but have to be.
std::optional<constrain::Language> answer_language(const OutputFormat& format, const AnswerRules& rules);

}  // namespace easydel::text
