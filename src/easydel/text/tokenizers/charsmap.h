// The character map that SentencePiece compiles into a model: a double-array trie and the replacements of its keys.
// Format: google/sentencepiece src/normalizer.cc, s-yata/darts-clone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::text {

class Charsmap {
 public:
  Charsmap() = default;
  explicit Charsmap(std::string_view blob);  // UserError: the sizes are inconsistent

  bool empty() const { return units_.empty(); }

  struct Match {
    size_t length;  // bytes of the text that are replaced
    std::string_view replacement;
  };
  // The replacement of the shortest or the longest key that `text` begins with; nullopt: there is no such key.
  std::optional<Match> shortest(std::string_view text) const { return find(text, false); }
  std::optional<Match> longest(std::string_view text) const { return find(text, true); }

 private:
  std::optional<Match> find(std::string_view text, bool longest) const;
  std::vector<uint32_t> units_;
  std::string strings_;  // each ends with a zero byte
};

std::string decode_base64(std::string_view text);  // UserError: not base64
std::string encode_base64(std::string_view bytes);

}  // namespace easydel::text
