// The first part of the bytes (up to a zero) as a tokenizer.json, the rest as a text for it; and back.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/json_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  std::string_view all(reinterpret_cast<const char*>(data), size);
  size_t zero = std::min(all.find('\0'), size);
  std::string_view json = all.substr(0, zero), words = all.substr(std::min(size, zero + 1));
  try {
    text::JsonTokenizer tokenizer(text::parse_tokenizer_json(json, "fuzz"), {});
    auto ids = tokenizer.encode(words, {});
    auto full = tokenizer.encode_full(words, std::string("pair"), {});
    if (full.ids.size() != full.offsets.size() || full.ids.size() != full.tokens.size()) std::abort();
    if (ids != tokenizer.encode_full(words, std::nullopt, {}).ids) std::abort();
    tokenizer.decode(ids, false, true, false);
    tokenizer.decode(full.ids, true, std::nullopt, true);
  } catch (const UserError&) {
  }
  return 0;
}
