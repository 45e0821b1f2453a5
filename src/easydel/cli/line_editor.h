// Lines from a terminal, with editing and history by libedit, which is loaded when a terminal is first read from.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace easydel::cli {

class LineEditor {
 public:
  virtual ~LineEditor() = default;
  // The next message, without its line break; a paste of several lines is one message. nullopt: the input has ended.
  // Ctrl-C clears what was typed.
  virtual std::optional<std::string> read() = 0;
};

// Reads standard input and writes the prompt to standard error. nullptr: libedit cannot be loaded.
std::unique_ptr<LineEditor> make_line_editor(bool colour);

}  // namespace easydel::cli
