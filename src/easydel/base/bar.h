// A progress bar on the terminal, in one line that is redrawn in place. The caller decides when to draw. Output to
// anything else than a terminal draws nothing.
#pragma once

#include <cstdio>
#include <string>

namespace easydel {

// "[####....]", `columns` wide; empty if that is fewer than seven.
std::string bar_of(double share, int columns, bool colour);

// Draws nothing if `stream` is not a terminal.
class TerminalBar {
 public:
  explicit TerminalBar(std::string title, std::FILE* stream = stderr);
  ~TerminalBar();  // wipes the line
  TerminalBar(const TerminalBar&) = delete;
  TerminalBar& operator=(const TerminalBar&) = delete;

  bool on_terminal() const { return on_terminal_; }
  void draw(double share);  // "title [####....] 50 %"

 private:
  std::string title_;
  std::FILE* stream_;
  bool on_terminal_, colour_, drawn_ = false;
};

// Width of the terminal in columns; 80 if unknown.
int columns_of(std::FILE* stream);
bool wants_colour();  // NO_COLOR is not set

}  // namespace easydel
