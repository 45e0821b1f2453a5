// A bar on the terminal for work that takes long, in one line that is drawn again and again. When to draw is the
// caller's business.
#pragma once

#include <cstdio>
#include <string>

namespace easydel {

// "[####....]" of so many columns; empty where there are fewer than seven.
std::string bar_of(double share, int columns, bool colour);

// On a stream that is no terminal nothing is drawn.
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

// Columns of the terminal; 80 where nobody knows.
int columns_of(std::FILE* stream);
bool wants_colour();  // NO_COLOR is not set

}  // namespace easydel
