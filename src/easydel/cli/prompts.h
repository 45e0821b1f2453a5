// The prompts of `generate`: from -p, a file of prompts, or standard input.
#pragma once

#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/cli/commands.h"

namespace easydel::cli {

// A text to continue, or a conversation to answer.
struct Prompt {
  std::string text;
  Value messages = {};  // null: none

  bool is_conversation() const { return !messages.is_null(); }
  std::string last_words() const;  // the content of the last message; empty if it is not a text
};

// Those of -p, then those of --prompts-file; standard input as one prompt if there are neither. UserError: no prompt,
// or a line of the file that is none.
std::vector<Prompt> read_prompts(const GenerateOptions& options);

}  // namespace easydel::cli
