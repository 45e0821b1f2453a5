// A tokenizer behind lines of JSON: one line in, one line out. `probe tokenize` and `tokenize --serve` answer with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

// Thread-safe. A line that fails returns {"error": "text"}.
//
// {"text", "pair"?, "add_special_tokens"? = true, "parse_special"? = true, "file_limits"? = false, "masks"? = false,
//  "overflowing"? = false, "breaks"?: [bytes], "only_ids"? = false}
//                                  -> {"ids", "tokens", "offsets"}, with masks "special_tokens_mask", "type_ids" too
// {"ids", "skip_special_tokens"? = false, "clean_up"?, "time_stamps"? = false}                          -> {"text"}
// {"tokenizer_hash": true}                                                                    -> {"tokenizer_hash"}
class TokenizeLines {
 public:
  explicit TokenizeLines(std::shared_ptr<const Tokenizer> tokenizer);
  std::string answer(std::string_view line) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

// SHA-256 of the vocabulary with its special tokens, and of what the tokenizer makes of a sample: tokenizers with equal
// hashes may stand for each other.
std::string tokenizer_hash(const Tokenizer& tokenizer);

}  // namespace easydel::text
