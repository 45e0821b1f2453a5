#include "easydel/data/text_bytes.h"

#include <cstdint>
#include <vector>

namespace easydel::data {
namespace {

int64_t bytes_of(const Example& example, const text::Tokenizer& tokenizer, bool shifted) {
  const std::vector<int32_t> labels = example.unshifted_labels(shifted);
  const std::span<const int32_t> tokens(example.tokens);
  int64_t bytes = 0;
  size_t sequence = 0;  // where it begins
  for (const int32_t length : example.lengths) {
    const size_t end = sequence + size_t(length);
    for (size_t begin = sequence; begin < end;) {
      if (labels[begin] == no_label) {
        ++begin;
        continue;
      }
      size_t stop = begin;
      while (stop < end && labels[stop] != no_label) ++stop;
      bytes += int64_t(text::decode_continuation(tokenizer, tokens.subspan(sequence, begin - sequence),
                                                 tokens.subspan(begin, stop - begin))
                           .size());
      begin = stop;
    }
    sequence = end;
  }
  return bytes;
}

}  // namespace

void count_text_bytes(std::span<Example> examples, const text::Tokenizer& tokenizer, bool shifted) {
  for (Example& example : examples)
    example.set({text_bytes, Column::Per::example, std::vector<int64_t>{bytes_of(example, tokenizer, shifted)}});
}

}  // namespace easydel::data
