// The commands and options of the program as data, for shell completion and the man page.
#pragma once

#include <string>
#include <vector>

namespace easydel::cli {

struct OptionEntry {
  std::vector<std::string> names;  // "-n", "--max-new-tokens"; empty: a positional argument
  std::string argument;            // name of a positional argument
  std::string doc;
  bool takes_value = false, hidden = false;
};

struct CommandEntry {
  std::string name, doc;
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> commands;
};

std::string completion_script(const CommandEntry& program, const std::string& shell);  // bash, zsh, fish
std::string man_page(const CommandEntry& program, const std::string& version);

}  // namespace easydel::cli
