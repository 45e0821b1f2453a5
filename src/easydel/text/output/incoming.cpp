// Resumes the reader, and drops text that is no longer needed.
#include "easydel/text/output/incoming.h"

#include <algorithm>

namespace easydel::text {

void Incoming::feed(std::string_view more) {
  constexpr size_t kept = size_t{1} << 16;
  const size_t gone = std::min(at_, mark_);
  if (gone > kept && gone > text_.size() / 2) {
    text_.erase(0, gone);
    at_ -= gone;
    if (mark_ != std::string::npos) mark_ -= gone;
  }
  text_ += more;
  if (reader_ && remaining().size() >= needed_) std::exchange(reader_, nullptr).resume();
}

void Incoming::end() {
  ended_ = true;
  while (reader_) std::exchange(reader_, nullptr).resume();
}

}  // namespace easydel::text
