// Maps between tokens and ids: a flat arena and an open-addressing hash table.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::text {

using TokenId = int32_t;

inline uint64_t hash_of(std::string_view text) {
  constexpr uint64_t k = 0x9E3779B97F4A7C15u;
  uint64_t h = text.size() * k;
  const char* p = text.data();
  size_t n = text.size();
  auto mix = [&](uint64_t word) {
    h = (h ^ word) * k;
    h ^= h >> 32;
  };
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  uint64_t word = 0;
  std::memcpy(&word, p, n);
  mix(word ^ uint64_t(n) << 56);
  return h ^ h >> 29;
}

class Vocabulary {
 public:
  void reserve(size_t tokens, size_t bytes);
  // The later of two equal tokens or ids wins. `id` must be below 2^24.
  void add(std::string_view token, TokenId id) { add(token, id, hash_of(token)); }
  void add(std::string_view token, TokenId id, uint64_t hash);
  TokenId find(std::string_view token) const { return find(token, hash_of(token)); }  // -1: no such token
  TokenId find(std::string_view token, uint64_t hash) const {
    if (slots_.empty()) return -1;
    for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.id < 0) return -1;
      if (slot.length == token.size() && std::memcmp(arena_.data() + slot.offset, token.data(), token.size()) == 0)
        return slot.id;
    }
  }
  // For many lookups at once: prefetch the memory that find(token, hash) will read, first the slot, then the token.
  void prefetch_slot(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & mask_]);
  }
  void prefetch_token(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(arena_.data() + slots_[hash & mask_].offset);
  }
  bool has(TokenId id) const { return id >= 0 && size_t(id) < by_id_.size() && by_id_[id].id >= 0; }
  std::string_view token(TokenId id) const {  // empty: no such id
    if (!has(id)) return {};
    return std::string_view(arena_).substr(by_id_[id].offset, by_id_[id].length);
  }
  size_t size() const { return count_; }              // number of distinct tokens, or the number set by count_all
  void count_all(size_t tokens) { count_ = tokens; }  // for a list that may contain duplicates
  size_t longest() const { return longest_; }         // bytes of the longest token
  bool has_twins() const { return has_twins_; }       // true if a token has two ids
  size_t id_limit() const { return by_id_.size(); }   // one more than the largest id

 private:
  struct Slot {
    uint32_t offset = 0, length = 0;
    TokenId id = -1;
  };
  void grow(size_t slots);
  std::string arena_;
  std::vector<Slot> slots_, by_id_;
  size_t mask_ = 0, count_ = 0, longest_ = 0;
  bool has_twins_ = false;
};

}  // namespace easydel::text
