// Any bytes as a language and a text: the first byte says which kind, a zero byte is between the two.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "easydel/base/error.h"
#include "easydel/text/constrain/constraint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  using namespace easydel::text::constrain;
  if (size < 1) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t end = text.find('\0');
  const std::string source(text.substr(0, end));
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  constexpr Language::Kind kKinds[] = {Language::Kind::json_schema, Language::Kind::regex, Language::Kind::grammar};
  try {
    const auto automaton = compile({kKinds[data[0] % 3], source});
    Stacks stacks(*automaton);
    Position at = stacks.begin(), next;
    for (const char byte : text.substr(0, 200)) {
      stacks.step(at, static_cast<uint8_t>(byte), next);
      if (next.dead()) break;
      std::swap(at, next);
      stacks.compact(at);
      // What has begun can go on, or be at its end.
      bool leads_on = at.may_end;
      for (int each = 0; each < 256 && !leads_on; ++each) {
        stacks.step(at, static_cast<uint8_t>(each), next);
        leads_on = !next.dead();
      }
      if (!leads_on) std::abort();
    }
  } catch (const UserError&) {
  }
  return 0;
}
