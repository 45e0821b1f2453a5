// An answer on standard output while it comes: the reasoning of the model first, then the text.
#pragma once

#include <string_view>

namespace easydel::cli {

class ShownReply {
 public:
  // Reasoning is dimmed at a terminal, unless NO_COLOR is set. Pieces may be empty.
  void reasoning(std::string_view piece);
  void text(std::string_view piece);
  void end();  // no piece follows; ends the line

 private:
  bool is_thinking_ = false;  // reasoning was printed, and no text after it
  bool dims_ = false;
};

}  // namespace easydel::cli
