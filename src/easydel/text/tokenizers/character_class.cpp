// Evaluates the class with Oniguruma, 256 characters at a time.
#include "easydel/text/tokenizers/character_class.h"

#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/regex.h"

namespace easydel::text {

struct CharacterClass::Compiled {
  Regex regex;
};

CharacterClass::CharacterClass(std::string pattern)
    : pattern_(std::move(pattern)), compiled_(new Compiled{Regex(pattern_, Regex::Engine::oniguruma)}) {
  const Block& first = *ask(0);
  for (size_t c = 0; c < 128; ++c) ascii_[c] = first[c >> 6] >> (c & 63) & 1;
  for (int byte = 0; byte < 256; ++byte) mapped_[byte] = has(character_of_byte(uint8_t(byte)));
}

CharacterClass::~CharacterClass() {
  for (auto& block : blocks_) delete block.load();
}

const CharacterClass::Block* CharacterClass::ask(size_t block) const {
  auto made = std::make_unique<Block>();
  std::string text;
  for (size_t low = 0; low < 256; ++low) {
    auto c = static_cast<char32_t>(block << 8 | low);
    if (c >= 0xd800 && c < 0xe000) continue;
    text.clear();
    append_utf8(text, c);
    if (compiled_->regex.matches_at_start(text)) (*made)[low >> 6] |= uint64_t{1} << (low & 63);
  }
  const Block* there = nullptr;
  if (blocks_[block].compare_exchange_strong(there, made.get(), std::memory_order_acq_rel)) return made.release();
  return there;
}

}  // namespace easydel::text
