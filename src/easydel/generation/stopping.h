// When a text ends by what it says: stop strings over a stream of pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace easydel::generation {

// Feeds pieces through; nothing that might be the beginning of a stop string is let out before that is settled, so
// whatever push() returns is final.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops);

  std::string push(std::string_view piece);        // what may be shown now
  std::string finish();                            // the rest, when the text ended otherwise
  bool would_stop(std::string_view piece) const;   // whether a stop string would be there after this piece
  std::string_view held() const { return held_; }  // what was not let out yet
  bool stopped() const { return stopped_; }        // a stop string came; it and what follows are dropped

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace easydel::generation
