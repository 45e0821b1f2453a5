// The character map that SentencePiece compiles into a model: a trie in a double array, and what its keys become.
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
  explicit Charsmap(std::string_view blob);  // UserError where sizes do not fit

  bool empty() const { return units_.empty(); }

  struct Match {
    size_t length;  // bytes of the text that are replaced
    std::string_view becomes;
  };
  // What the shortest or the longest key at the beginning of `text` becomes; nullopt: no key is there.
  std::optional<Match> shortest(std::string_view text) const { return find(text, false); }
  std::optional<Match> longest(std::string_view text) const { return find(text, true); }

 private:
  std::optional<Match> find(std::string_view text, bool longest) const;
  std::vector<uint32_t> units_;
  std::string strings_;  // each ends in a zero byte
};

std::string decode_base64(std::string_view text);  // UserError where it is none
std::string encode_base64(std::string_view bytes);

}  // namespace easydel::text
