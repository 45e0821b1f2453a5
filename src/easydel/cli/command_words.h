// Errors about the words of a command line, in the words of this program.
#pragma once

#include <string>
#include <vector>

namespace easydel::cli {

// A command as far as it was recognized: "easydel describe model", and what may follow it.
struct KnownWords {
  std::string command;
  std::vector<std::string> options;   // with their dashes
  std::vector<std::string> commands;  // below it; empty: it takes arguments
};

// UserError: `word` is neither an option nor a command here.
[[noreturn]] void refuse_word(const KnownWords& known, const std::string& word);

// UserError for an error of CLI11 in the words of this program: "--top-k needs a value".
[[noreturn]] void refuse_arguments(const KnownWords& known, std::string problem);

}  // namespace easydel::cli
