// Stop strings in streamed text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace easydel::generation {

// Filters streamed text. Text that could be the beginning of a stop string is held back until that is decided, so the
// text that push() returns is final.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops);

  std::string push(std::string_view piece);          // what may be shown now
  std::string finish();                              // the rest, when the text ended otherwise
  bool would_stop(std::string_view piece) const;     // whether this text would complete a stop string
  std::string_view held() const { return held_; }    // text that is still held back
  bool stopped() const { return stopped_; }          // a stop string came; it and what follows are dropped
  const std::string& stop() const { return stop_; }  // the one that came first

 private:
  std::vector<std::string> stops_;
  std::string held_, stop_;
  bool stopped_ = false;
};

}  // namespace easydel::generation
