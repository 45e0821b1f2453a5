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

struct SpecialToken {
  TokenId id = -1;
  std::string content;
};

// A template in code: what stands around one text, and around two.
struct FrameStep {
  int text = -1;            // 0, 1: that text; -1: the token
  SpecialToken token = {};  // an id that is there already stays
  uint8_t type = 0;
  bool keeps_content = false;  // though the token is not in the vocabulary, and so has the id of the unknown one
};
struct Frame {
  std::vector<FrameStep> single, pair;
  bool yields = false;            // add_bos_token and add_eos_token of a config count more
  std::optional<bool> trim = {};  // offsets leave blanks out; true: a text is given one, and its own is left out too
};
std::unique_ptr<const PostProcessor> make_frame(const Frame& frame);

// bos? A eos? and bos? A eos? bos? B eos?: what transformers sets where a config asks for these tokens.
std::unique_ptr<const PostProcessor> make_bos_eos(std::optional<SpecialToken> bos, std::optional<SpecialToken> eos);

Encoding joined(std::vector<Encoding> parts);

}  // namespace easydel::text
