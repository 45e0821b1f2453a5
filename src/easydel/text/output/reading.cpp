// Reads markers and names.
#include "easydel/text/output/reading.h"

#include <algorithm>

namespace easydel::text {
namespace {

bool may_become(std::string_view text, std::string_view marker) {
  return text.size() < marker.size() && marker.starts_with(text);
}

bool in_name(int c) {
  return c >= 0x80 || (c > 0 && (std::isalnum(c) || std::string_view("_-./:").find(char(c)) != std::string_view::npos));
}

}  // namespace

Task<size_t> next_is(Incoming& in, const Markers& markers) {
  for (size_t needed = 1;; ++needed) {
    const bool more = co_await in.need(needed);
    const std::string_view remaining = in.remaining();
    size_t best = none_index;
    bool open = false;
    for (size_t i = 0; i < markers.size(); ++i) {
      if (remaining.starts_with(markers[i]) && (best == none_index || markers[i].size() > markers[best].size()))
        best = i;
      open = open || may_become(remaining, markers[i]);
    }
    if (!open || !more) co_return best;
    needed = std::max(needed, remaining.size());
  }
}

Task<bool> take_if(Incoming& in, std::string_view marker) {
  for (size_t n = 0; n < marker.size(); ++n) {
    const int c = co_await in.peek(n);
    if (c != static_cast<unsigned char>(marker[n])) co_return false;
  }
  in.take(marker.size());
  co_return true;
}

Task<> skip_space(Incoming& in) {
  while (true) {
    const int c = co_await in.peek();
    if (!is_blank(c)) co_return;
    in.take(1);
  }
}

Task<size_t> read_until(Incoming& in, const Markers& markers, const Take& take) {
  std::string firsts;
  for (const std::string& marker : markers) firsts += marker[0];
  while (co_await in.need(1)) {
    const std::string_view remaining = in.remaining();
    const size_t at = firsts.empty() ? std::string_view::npos : remaining.find_first_of(firsts);
    const size_t plain = std::min(at, remaining.size());
    if (plain > 0) take(remaining.substr(0, plain)), in.take(plain);
    if (at == std::string_view::npos) continue;
    const size_t marker = co_await next_is(in, markers);
    if (marker != none_index) co_return marker;
    take(in.remaining().substr(0, 1));
    in.take(1);
  }
  co_return none_index;
}

Task<size_t> read_until(Incoming& in, const Markers& markers, std::string& out, size_t limit) {
  std::string firsts;
  for (const std::string& marker : markers) firsts += marker[0];
  while (out.size() < limit) {
    const bool more = co_await in.need(1);
    if (!more) break;
    if (firsts.find(in.remaining()[0]) != std::string::npos) {
      const size_t marker = co_await next_is(in, markers);
      if (marker != none_index) co_return marker;
    }
    out += in.remaining()[0];
    in.take(1);
  }
  co_return none_index;
}

Task<std::string> read_name(Incoming& in) {
  constexpr size_t longest = 256;
  std::string name;
  while (name.size() < longest) {
    const int c = co_await in.peek();
    if (!in_name(c)) break;
    name += char(c);
    in.take(1);
  }
  co_return name;
}

}  // namespace easydel::text
