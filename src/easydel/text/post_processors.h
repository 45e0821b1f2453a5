// The post-processors of tokenizer files: special tokens around one text or a pair, and trimmed offsets.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/tokenizer.h"

namespace easydel::text {

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // The parts (one text, or two) become others; what is returned is joined in the end.
  virtual void apply(std::vector<Encoding>& parts, bool add_special_tokens) const = 0;
  virtual int64_t added(size_t) const { return 0; }  // how many special tokens come to one text, or to two
};

std::unique_ptr<const PostProcessor> make_post_processor(const Value& node);

// bos? A eos? and bos? A eos? bos? B eos?: what transformers sets where a config asks for these tokens.
struct SpecialToken {
  TokenId id;
  std::string content;
};
std::unique_ptr<const PostProcessor> make_bos_eos(std::optional<SpecialToken> bos, std::optional<SpecialToken> eos);

Encoding joined(std::vector<Encoding> parts);

}  // namespace easydel::text
