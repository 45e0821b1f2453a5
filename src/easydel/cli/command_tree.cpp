#include "easydel/cli/command_tree.h"

#include <functional>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::cli {
namespace {

using Visit = std::function<void(const std::string& path, const CommandEntry& command)>;

// Every command with its path: "easydel", "easydel describe", "easydel describe keys".
void each_command(const CommandEntry& command, const std::string& above, const Visit& visit) {
  const std::string path = above.empty() ? command.name : above + " " + command.name;
  visit(path, command);
  for (const CommandEntry& below : command.commands) each_command(below, path, visit);
}

std::string replaced_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string in_single_quotes(const std::string& text) { return "'" + replaced_all(text, "'", "'\\''") + "'"; }

// Subcommands and visible long options of a command, or of one above it.
std::vector<std::string> words_of(const CommandEntry& command) {
  std::vector<std::string> out;
  for (const CommandEntry& below : command.commands) out.push_back(below.name);
  for (const OptionEntry& option : command.options)
    for (const std::string& name : option.names)
      if (!option.hidden && name.starts_with("--")) out.push_back(name);
  return out;
}

// The cases "PATH WORD" in which a word names a subcommand, between `|`.
std::string subcommand_cases(const CommandEntry& program) {
  std::vector<std::string> cases;
  each_command(program, "", [&](const std::string& path, const CommandEntry& command) {
    for (const CommandEntry& below : command.commands) cases.push_back('"' + path + " " + below.name + '"');
  });
  return join(cases, "|");
}

// bash; zsh runs it, too, through its bashcompinit.
std::string bash_script(const CommandEntry& program) {
  std::string out =
      "_easydel() {\n  local cur=\"${COMP_WORDS[COMP_CWORD]}\" path=easydel words= word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case \"$path $word\" in\n      " +
      subcommand_cases(program) + ") path=\"$path $word\" ;;\n    esac\n  done\n  case \"$path\" in\n";
  each_command(program, "", [&](const std::string& path, const CommandEntry& command) {
    out += "    \"" + path + "\") words=" + in_single_quotes(join(words_of(command), " ")) + " ;;\n";
  });
  return out +
         "  esac\n  COMPREPLY=()\n  while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < "
         "<(compgen -W \"$words\" -- \"$cur\")\n"
         "  if [ ${#COMPREPLY[@]} -eq 0 ]; then\n    while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < "
         "<(compgen -f -- \"$cur\")\n  fi\n}\ncomplete -o filenames -F _easydel easydel\n";
}

std::string fish_script(const CommandEntry& program) {
  std::string paths, lines;
  each_command(program, "", [&](const std::string& path, const CommandEntry& command) {
    if (path != program.name) paths += " " + in_single_quotes(path);
    const std::string when = "complete -c easydel -n " + in_single_quotes("__easydel_at " + path);
    for (const CommandEntry& below : command.commands)
      lines += when + " -a " + below.name + " -d " + in_single_quotes(below.doc) + "\n";
    for (const OptionEntry& option : command.options) {
      if (option.names.empty() || option.hidden) continue;
      lines += when;
      for (const std::string& name : option.names)
        lines += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      lines += (option.takes_value ? " -r" : "") + std::string(" -d ") + in_single_quotes(option.doc) + "\n";
    }
  });
  return "function __easydel_at\n  set -l path easydel\n  for word in (commandline -opc)[2..]\n"
         "    if contains -- \"$path $word\"" +
         paths + "\n      set path \"$path $word\"\n    end\n  end\n  test \"$path\" = \"$argv\"\nend\n" + lines;
}

// Text for troff: no request at the beginning of a line, no escape.
std::string roff(const std::string& text) {
  std::string out = replaced_all(replaced_all(text, "\\", "\\e"), "-", "\\-");
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

void add_options(const CommandEntry& command, std::string& out) {
  for (const OptionEntry& option : command.options) {
    if (option.hidden) continue;
    out += ".TP\n.B " + roff(option.names.empty() ? option.argument : join(option.names, ", ")) + "\n" +
           roff(option.doc) + "\n";
  }
}

}  // namespace

std::string completion_script(const CommandEntry& program, const std::string& shell) {
  if (shell == "bash") return bash_script(program);
  if (shell == "zsh") return "#compdef easydel\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(program);
  if (shell == "fish") return fish_script(program);
  refuse("easydel completion", "'" + shell + "' is not a shell that can be completed", "known: bash, zsh, fish");
}

std::string man_page(const CommandEntry& program, const std::string& version) {
  std::string out = ".TH EASYDEL 1 \"\" \"easydel " + version + "\"\n.SH NAME\neasydel \\- " + roff(program.doc) +
                    "\n.SH SYNOPSIS\n.B easydel\n[options] command [arguments]\n.SH OPTIONS\n";
  add_options(program, out);
  out += ".SH COMMANDS\n";
  each_command(program, "", [&](const std::string& path, const CommandEntry& command) {
    if (path == program.name) return;
    out += ".SS " + roff(path) + "\n" + roff(command.doc) + "\n";
    add_options(command, out);
  });
  return out;
}

}  // namespace easydel::cli
