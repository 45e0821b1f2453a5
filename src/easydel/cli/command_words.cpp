#include "easydel/cli/command_words.h"

#include <algorithm>
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

// Commands by the names that other tools have for them.
struct Alias {
  const char* word;
  const char* remedy;
};
constexpr const char* for_training =
    "to train, name a YAML file: easydel elarge run.yaml (examples/01_quickstart.yaml)";
constexpr Alias aliases[] = {
    {"train", for_training},
    {"finetune", for_training},
    {"fine-tune", for_training},
    {"infer", "to generate text: easydel generate MODEL -p 'text'"},
    {"predict", "to generate text: easydel generate MODEL -p 'text'"},
    {"server", "to serve a model: easydel serve MODEL"},
    {"evaluate", "to evaluate a model: easydel eval MODEL --tasks hellaswag"},
    {"benchmark", "to evaluate a model: easydel eval MODEL --tasks hellaswag"},
    {"convert", "to convert a model: easydel export MODEL --format gguf -o model.gguf"},
    {"download", "a model is downloaded when a command first names it"},
};

std::string remedy_for(const std::string& word, const std::vector<std::string>& commands) {
  if (const std::string near = nearest(word, commands); !near.empty()) return "did you mean '" + near + "'?";
  if (std::ranges::find(commands, "elarge") != commands.end()) {  // of the whole program
    std::vector<std::string> words;
    for (const Alias& alias : aliases) words.emplace_back(alias.word);
    const std::string near = nearest(word, words);
    for (const Alias& alias : aliases)
      if (near == alias.word) return alias.remedy;
  }
  return "commands: " + join(commands, ", ");
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
  refuse(known.command, "no command '" + word + "'", remedy_for(word, known.commands));
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
