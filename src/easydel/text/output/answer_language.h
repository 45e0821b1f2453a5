// What an answer must look like so that its calls and its content keep to a request: a language for text/constrain in
// the model's own format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  bool restricted = false;                          // there are others, which must not be called
  std::optional<constrain::Language> content = {};  // what content must be
  // As in OutputOptions.
  std::string begun = {};
  OutputOptions::Thinking thinking = OutputOptions::Thinking::unset;
};

// How the reasoning at the beginning of an answer ends.
struct ReasoningEnd {
  std::vector<std::string> opens = {};  // the answer has reasoning if it begins with one of these; empty: it has
  std::string close = {};
};
// nullopt: there is no reasoning. UserError: it cannot be ended from outside.
std::optional<ReasoningEnd> reasoning_end(const OutputFormat& format, const std::string& begun,
                                          OutputOptions::Thinking thinking);

// Whether an answer is in its reasoning, while its text comes. Of a format without reasoning it never is.
class ReasoningWatch {
 public:
  // `begun`, `thinking`: as in OutputOptions.
  ReasoningWatch(const OutputFormat& format, const std::string& begun, OutputOptions::Thinking thinking);
  // Adds text of the answer, with its special tokens. Returns whether reasoning is open behind it.
  bool push(std::string_view piece);

 private:
  enum class State : uint8_t { may_begin, inside, over };
  bool begins();

  State state_ = State::over;
  std::vector<std::string_view> opens_, closes_;
  bool again_ = false;  // channels: reasoning may begin anywhere, and more than once
  std::string text_;    // that may be the beginning of a marker
};

// nullopt: the answer is free. UserError: the format's calls or reasoning cannot be constrained, but have to be.
std::optional<constrain::Language> answer_language(const OutputFormat& format, const AnswerRules& rules);

}  // namespace easydel::text
