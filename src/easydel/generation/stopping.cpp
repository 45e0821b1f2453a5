#include "easydel/generation/stopping.h"

#include <algorithm>
#include <utility>

namespace easydel::generation {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopStrings::push(std::string_view piece) {
  if (stopped_) return "";
  held_ += piece;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_)
    if (const size_t at = held_.find(stop); at < first) first = at, stop_ = stop;
  if (first != std::string::npos) {
    stopped_ = true;
    return std::exchange(held_, "").substr(0, first);
  }
  // The longest tail that could begin a stop string is held back.
  size_t keep = 0;
  for (const std::string& stop : stops_)
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length)
      if (held_.ends_with(std::string_view(stop).substr(0, length))) keep = length;
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

bool StopStrings::would_stop(std::string_view piece) const {
  const std::string text = held_ + std::string(piece);
  return std::ranges::any_of(stops_, [&](const std::string& stop) { return text.find(stop) != std::string::npos; });
}

std::string StopStrings::finish() { return stopped_ ? "" : std::exchange(held_, ""); }

}  // namespace easydel::generation
