// The decoders of tokenizer files: from tokens to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::text {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Changes the tokens; the text is their concatenation.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

std::unique_ptr<const Decoder> make_decoder(const Value& node);
// transformers' clean_up_tokenization: removes spaces before punctuation and English contractions.
std::string clean_up(std::string text);

}  // namespace easydel::text
