// Fills a vocabulary.
#include "easydel/text/tokenizers/vocabulary.h"

#include <algorithm>
#include <bit>

#include "easydel/base/error.h"

namespace easydel::text {

void Vocabulary::grow(size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  mask_ = slots - 1;
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    size_t i = hash_of(std::string_view(arena_).substr(slot.offset, slot.length)) & mask_;
    while (slots_[i].id >= 0) i = (i + 1) & mask_;
    slots_[i] = slot;
  }
}

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  arena_.reserve(bytes);
  by_id_.reserve(tokens);
  size_t slots = std::bit_ceil(tokens * 2 + 16);
  if (slots > slots_.size()) grow(slots);
}

void Vocabulary::add(std::string_view token, TokenId id, uint64_t hash) {
  if (id < 0 || id >= 1 << 24)
    refuse("tokenizer", str("a token has the id ", id), str("ids go from 0 to ", (1 << 24) - 1));
  if ((count_ + 1) * 2 > slots_.size()) grow(std::max<size_t>(64, slots_.size() * 2));
  Slot entry{uint32_t(arena_.size()), uint32_t(token.size()), id};
  size_t i = hash & mask_;
  for (; slots_[i].id >= 0; i = (i + 1) & mask_)
    if (std::string_view(arena_).substr(slots_[i].offset, slots_[i].length) == token) break;
  if (slots_[i].id >= 0) {
    entry.offset = slots_[i].offset;
    has_twins_ = has_twins_ || slots_[i].id != id;
  } else {
    arena_.append(token);
    ++count_;
  }
  longest_ = std::max(longest_, token.size());
  slots_[i] = entry;
  if (size_t(id) >= by_id_.size()) by_id_.resize(id + 1);
  by_id_[id] = entry;
}

}  // namespace easydel::text
