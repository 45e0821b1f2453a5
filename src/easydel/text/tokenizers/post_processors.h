// The post-processors of tokenizer files: special tokens around one text or a pair, and trimmed offsets.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // Changes the parts (one text, or two); they are joined in the end.
  virtual void apply(std::vector<Encoding>& parts, bool add_special_tokens) const = 0;
  virtual int64_t added(size_t) const { return 0; }  // number of special tokens added to one text, or to two
  virtual Value as_json() const = 0;                 // as in tokenizer.json
};

std::unique_ptr<const PostProcessor> make_post_processor(const Value& node);

struct SpecialToken {
  TokenId id = -1;
  std::string content;
};

// A template: the tokens around one text and around two.
struct FrameStep {
  int text = -1;            // 0, 1: index of a text; -1: `token`
  SpecialToken token = {};  // an id that is set already is kept
  uint8_t type = 0;
  bool keeps_content = false;  // if the token is missing and gets the unknown id, keep its text
};
struct Frame {
  std::vector<FrameStep> single, pair;
  bool yields = false;            // add_bos_token and add_eos_token of the configuration override it
  std::optional<bool> trim = {};  // set: trim blanks from offsets; true: a blank was added before the text
};
std::unique_ptr<const PostProcessor> make_frame(const Frame& frame);

// bos? A eos? and bos? A eos? bos? B eos?: transformers' template for a configuration that requests these tokens.
std::unique_ptr<const PostProcessor> make_bos_eos(std::optional<SpecialToken> bos, std::optional<SpecialToken> eos);

Encoding joined(std::vector<Encoding> parts);

}  // namespace easydel::text
