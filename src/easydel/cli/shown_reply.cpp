#include "easydel/cli/shown_reply.h"

#include <unistd.h>

#include <cstdlib>

#include "easydel/cli/commands.h"

namespace easydel::cli {
namespace {

bool can_dim() {
  const char* const no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) && (!no_color || !*no_color);
}

}  // namespace

void ShownReply::reasoning(std::string_view piece) {
  if (piece.empty()) return;
  if (!is_thinking_ && (dims_ = can_dim())) print("\033[2m");
  is_thinking_ = true;
  print(piece);
}

void ShownReply::text(std::string_view piece) {
  if (piece.empty()) return;
  if (is_thinking_) print(dims_ ? "\033[0m\n\n" : "\n\n");
  is_thinking_ = false;
  print(piece);
}

void ShownReply::end() {
  print(is_thinking_ && dims_ ? "\033[0m\n" : "\n");
  is_thinking_ = false;
}

}  // namespace easydel::cli
