// A per-thread cache of the short pieces that were encoded last, for all tokenizers. Nothing is shared or locked.
#pragma once

#include <atomic>
#include <cstring>
#include <string_view>
#include <vector>

#include "easydel/text/tokenizers/model.h"

namespace easydel::text {

class WordMemory {
 public:
  WordMemory() : owner_(next_.fetch_add(1) + 1) {}

  // Appends the tokens of `piece`, like `encode(piece, out)`.
  template <class Encode>
  void tokenize(std::string_view piece, std::vector<Token>& out, Encode&& encode) const {
    if (piece.size() > longest) return encode(piece, out);
    thread_local std::vector<Entry> memory(size_t{1} << 14);
    Entry& entry = memory[(hash_of(piece) ^ owner_) & (memory.size() - 1)];
    if (entry.owner == owner_ && entry.length == piece.size() &&
        std::memcmp(entry.bytes, piece.data(), piece.size()) == 0) {
      for (int i = 0; i < entry.count; ++i) out.push_back({entry.ids[i], entry.lengths[i]});
      return;
    }
    size_t before = out.size();
    encode(piece, out);
    size_t count = out.size() - before;
    if (count > max_tokens) return;
    for (size_t i = 0; i < count; ++i)
      if (out[before + i].is_surface) return;
    entry.owner = owner_;
    entry.length = uint8_t(piece.size());
    entry.count = uint8_t(count);
    std::memcpy(entry.bytes, piece.data(), piece.size());
    for (size_t i = 0; i < count; ++i) {
      entry.ids[i] = out[before + i].id;
      entry.lengths[i] = uint8_t(out[before + i].length);
    }
  }

 private:
  static constexpr size_t longest = 22, max_tokens = 7;
  struct Entry {
    uint64_t owner = 0;
    uint8_t length = 0, count = 0;
    char bytes[longest];
    TokenId ids[max_tokens];
    uint8_t lengths[max_tokens];
  };
  static inline std::atomic<uint64_t> next_{0};
  uint64_t owner_;  // unique forever, because a thread's cache outlives a tokenizer
};

}  // namespace easydel::text
