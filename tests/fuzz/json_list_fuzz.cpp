// The list reader out of any bytes, in pieces of several sizes: the elements of every document that is a list, or an
// error where the parser of whole documents has one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/data/json_list.h"

namespace {

using namespace easydel;

class Pieces final : public data::ByteStream {
 public:
  Pieces(std::string_view text, size_t size) : text_(text), size_(size) {}
  size_t read(char* to, size_t bytes) override {
    const size_t count = std::min({bytes, size_, text_.size()});
    text_.copy(to, count);
    text_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view text_;
  size_t size_;
};

// Nothing: the bytes are not a list.
std::optional<Value> by_elements(std::string_view text, size_t piece) {
  Pieces pieces(text, piece);
  Value out = Value::list();
  try {
    data::for_each_element(pieces, [&](std::string_view element, int64_t, int64_t) {
      out.items.push_back(parse_json(element));
      return true;
    });
  } catch (const UserError&) {
    return std::nullopt;
  } catch (const data::ListError&) {
    return std::nullopt;
  }
  return out;
}

std::optional<Value> as_a_whole(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '[') return std::nullopt;
  try {
    return parse_json(text);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<Value> whole = as_a_whole(text);
  for (const size_t piece : {size_t{1}, size_t{5}, size + 1}) {
    const std::optional<Value> parts = by_elements(text, piece);
    if (whole && (!parts || !(*parts == *whole))) std::abort();
  }
  return 0;
}
