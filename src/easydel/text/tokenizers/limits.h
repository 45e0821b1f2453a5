// The sections 'truncation' and 'padding' of a tokenizer file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

enum class Side : uint8_t { left, right };

struct Truncation {
  enum class Strategy : uint8_t { longest_first, only_first, only_second };
  int64_t max_length = 512, stride = 0;
  Strategy strategy = Strategy::longest_first;
  Side direction = Side::right;  // the end that is truncated

  // Truncates one text or a pair before `added` special tokens are added. UserError: the strategy cannot do it.
  void apply(std::vector<Encoding>& parts, int64_t added) const;
};

struct Padding {
  std::optional<int64_t> length;  // nullopt: the length of the longest in the batch
  int64_t multiple_of = 0;        // 0: any length
  Side direction = Side::right;
  TokenId id = 0;
  uint8_t type = 0;
  std::string token = "[PAD]";

  void apply(Encoding& encoding) const;  // a batch of one

 private:
  void lengthen(Encoding& encoding, int64_t target) const;
};

Truncation read_truncation(const Value& node);
Padding read_padding(const Value& node);

}  // namespace easydel::text
