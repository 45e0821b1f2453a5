// The data of unicode.cpp. Categories in the order of `Category`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace easydel::text::tables {

// A run begins at code point (entry >> 8) and ends before the next entry's. The low byte: category in 5 bits, then
// one bit each for word character, punctuation, combining mark (as `tokenizers` strips accents).
extern const uint32_t runs[];
extern const size_t run_count;

struct Lower {
  uint32_t first, last, step;
  int32_t difference;
};
extern const Lower lower[];
extern const size_t lower_count;

// Code points that decompose only in versions of Unicode newer than the normalization of `tokenizers`.
struct Range {
  uint32_t first, last;
};
extern const Range undecomposed[];
extern const size_t undecomposed_count;

// Marks and format characters that are newer than the tables of BertNormalizer, which therefore keeps them.
extern const Range kept_by_bert[];
extern const size_t kept_by_bert_count;

// A run of one script begins at code point (entry >> 8); the low byte is the script, 0: none.
extern const uint32_t scripts[];
extern const size_t script_count;

// A run of one kind of graphemes.cpp begins at code point (entry >> 8).
extern const uint32_t graphemes[];
extern const size_t grapheme_count;

}  // namespace easydel::text::tables
