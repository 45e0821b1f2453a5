#include "easydel/text/tokenizers/cut_encoding.h"

#include <algorithm>
#include <utility>

namespace easydel::text {
namespace {

// How many tokens each text of a pair keeps, counted from its beginning, so that both together have at most `most`.
std::pair<int64_t, int64_t> cut_pair(int64_t first, int64_t second, int64_t most) {
  if (first + second <= most) return {first, second};
  const bool swapped = first > second;
  int64_t shorter = std::min(first, second), longer = shorter > most ? shorter : most - shorter;
  longer = std::max(longer, shorter);
  if (shorter + longer > most) shorter = most / 2, longer = shorter + most % 2;
  return swapped ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

}  // namespace

int64_t added_tokens(const Encoding& encoding) { return std::ranges::count(encoding.special_tokens_mask, uint8_t{1}); }

std::optional<Encoding> cut_encoding(const Encoding& encoding, int64_t most) {
  if (int64_t(encoding.ids.size()) <= most) return encoding;
  const int64_t added = added_tokens(encoding);
  if (added >= most) return std::nullopt;
  int64_t parts[2] = {0, 0};
  size_t part = 0;
  for (const uint8_t special : encoding.special_tokens_mask) {
    // A token that the tokenizer adds ends the first part, if that has begun.
    if (special && parts[0] > 0) part = 1;
    if (!special) ++parts[part];
  }
  auto [first, second] = cut_pair(parts[0], parts[1], most - added);
  Encoding out;
  int64_t seen = 0;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    if (!encoding.special_tokens_mask[i]) {
      int64_t& left = seen++ < parts[0] ? first : second;
      if (left == 0) continue;
      --left;
    }
    out.ids.push_back(encoding.ids[i]);
    out.tokens.push_back(encoding.tokens[i]);
    out.offsets.push_back(encoding.offsets[i]);
    out.special_tokens_mask.push_back(encoding.special_tokens_mask[i]);
    out.type_ids.push_back(encoding.type_ids[i]);
  }
  return out;
}

}  // namespace easydel::text
