// The decoders of tokenizer files: from tokens to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

// One token on its way through the decoders, without its neighbours.
struct LoneToken {
  std::string text;  // in the end the bytes that it adds
  TextPlace place = TextPlace::inside;
  TextPlace next = TextPlace::inside;  // of the token after it
  bool fused = false;                  // decoders from here on see the whole text
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // What apply() does to a token in any text, or to a part of a character; false: that depends on its neighbours.
  virtual bool apply_alone(LoneToken& token) const = 0;
  // Changes the tokens; the text is their concatenation.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

std::unique_ptr<const Decoder> make_decoder(const Value& node);
// transformers' clean_up_tokenization: removes spaces before punctuation and English contractions.
std::string clean_up(std::string text);

}  // namespace easydel::text
