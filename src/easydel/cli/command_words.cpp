#include "easydel/cli/command_words.h"

#include <string_view>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::cli {
namespace {

// The part of `text` between `before` and `after`; empty: they are not there in this order.
std::string between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t begin = text.find(before);
  if (begin == std::string_view::npos) return "";
  const size_t end = after.empty() ? text.size() : text.find(after, begin + before.size());
  if (end == std::string_view::npos) return "";
  return std::string(text.substr(begin + before.size(), end - begin - before.size()));
}

}  // namespace

void refuse_word(const KnownWords& known, const std::string& word) {
  if (word.starts_with("-")) {
    const std::string near = nearest(word.substr(0, word.find('=')), known.options);
    refuse(known.command + " " + word, "no such option",
           near.empty() ? "known: " + join(known.options, ", ") : "did you mean '" + near + "'?");
  }
  if (known.commands.empty())
    refuse(known.command, "'" + word + "' is one argument too many", "see " + known.command + " --help");
  const std::string near = nearest(word, known.commands);
  refuse(known.command, "no command '" + word + "'",
         near.empty() ? "commands: " + join(known.commands, ", ") : "did you mean '" + near + "'?");
}

void refuse_arguments(const KnownWords& known, std::string problem) {
  std::string remedy = "see " + known.command + " --help";
  if (problem == "A subcommand is required") {
    problem = "a command is missing";
    remedy = "commands: " + join(known.commands, ", ");
  } else if (const std::string option = between(problem, "", ": 1 required"); !option.empty()) {
    problem = option + " needs a value";
  } else if (const std::string value = between(problem, "Could not convert: ", ""); !value.empty()) {
    problem = "'" + between(value, " = ", "") + "' is not a number (" + between(value, "", " = ") + ")";
  } else if (const std::string text = between(problem, ": Value ", " not in range "); !text.empty()) {
    std::string range = between(problem, " not in range ", "");
    if (const size_t to = range.find(" to "); to != std::string::npos) range = "from " + range;
    problem = between(problem, "", ": Value ") + ": '" + text + "' is not a whole number " + range;
  }
  refuse(known.command, problem, remedy);
}

}  // namespace easydel::cli
