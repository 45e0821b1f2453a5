// The first byte names a format (m SentencePiece, g GGUF, t tekken.json, k tiktoken, r RWKV, v vocab.json and
// merges.txt, w a list of words); the rest is the file. What can be read encodes a few texts, in both ways, and decodes
// them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/formats.h"

namespace easydel {
namespace {

text::ReadTokenizer read(char format, std::string_view bytes) {
  switch (format) {
    case 'm':
      return text::read_sentencepiece(bytes, "fuzz");
    case 'g':
      return text::read_gguf(weights::GgufMetadata(std::as_bytes(std::span(bytes)), "fuzz"));
    case 't':
      return text::read_tekken(bytes, "fuzz");
    case 'k':
      return text::read_tiktoken(bytes, "fuzz");
    case 'r':
      return text::read_rwkv(bytes, "fuzz");
    case 'v': {  // a vocabulary, and after a zero its merges
      text::NamedTokens named;
      const size_t end = std::min(bytes.find('\0'), bytes.size());
      return text::read_vocabulary_and_merges(bytes.substr(0, end), bytes.substr(std::min(end + 1, bytes.size())),
                                              Value::map(), "roberta", named, "fuzz");
    }
    default:
      text::NamedTokens named;
      return text::read_word_list(bytes, Value::map(), "", named, "fuzz");
  }
}

}  // namespace
}  // namespace easydel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  if (size == 0) return 0;
  try {
    text::ReadTokenizer file = read(static_cast<char>(data[0]), {reinterpret_cast<const char*>(data) + 1, size - 1});
    text::JsonTokenizer tokenizer(std::move(file.parts), {});
    for (std::string_view words :
         {"Hello  w\xC3\xB6rld, 2024 \n\tabc", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
          "<s>\xE2\x96\x81\xE6\xB0\xB4\xF0\x9F\x99\x82</s>\xCC\x81"}) {
      try {
        auto ids = tokenizer.encode(words, {});
        auto full = tokenizer.encode_full(words, std::nullopt, {});
        if (ids != full.ids || full.ids.size() != full.offsets.size()) std::abort();
        tokenizer.decode(ids, false, std::nullopt, false);
        tokenizer.decode(ids, true, true, false);
      } catch (const UserError&) {  // a character that the vocabulary lacks
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}
