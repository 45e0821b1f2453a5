#include "easydel/base/bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "easydel/base/error.h"

namespace easydel {

std::string bar_of(double share, int columns, bool colour) {
  const int room = columns - 2;
  if (room < 5) return {};
  const int full = int(std::clamp(share, 0.0, 1.0) * room + 0.5);
  const std::string bar = str("[", std::string(size_t(full), '#'), std::string(size_t(room - full), '.'), "]");
  return colour ? str("\033[36m", bar, "\033[0m") : bar;
}

int columns_of(std::FILE* stream) {
  winsize size = {};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool wants_colour() {
  const char* const no = std::getenv("NO_COLOR");
  return !no || !*no;
}

TerminalBar::TerminalBar(std::string title, std::FILE* stream)
    : title_(std::move(title)), stream_(stream), on_terminal_(isatty(fileno(stream)) == 1), colour_(wants_colour()) {}

TerminalBar::~TerminalBar() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stream_);
  std::fflush(stream_);
}

void TerminalBar::draw(double share) {
  if (!on_terminal_) return;
  const std::string after = str(" ", int(100 * share), " %");
  const int room = std::clamp(columns_of(stream_) - int(title_.size() + after.size()) - 2, 0, 42);
  std::fprintf(stream_, "\r\033[K%s %s%s", title_.c_str(), bar_of(share, room, colour_).c_str(), after.c_str());
  std::fflush(stream_);
  drawn_ = true;
}

}  // namespace easydel
