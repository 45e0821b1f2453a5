// A conversation into text, ids and the mask of what the assistant says: what training and chat need.
// The context is transformers' (apply_chat_template): messages, tools, add_generation_prompt, the special tokens as
// strings, and whatever else the caller gives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/chat_template.h"
#include "easydel/text/tokenizer.h"

namespace easydel::text {

struct ChatOptions {
  Value tools = {};                    // a list of schemas; null: none
  bool add_generation_prompt = false;  // end where the assistant is to go on
  Value extra = {};                    // a map of further names: enable_thinking, documents ...
};

struct RenderedChat {
  std::string text;
  std::vector<TokenId> ids;             // of the text, without the tokenizer's own BOS and EOS
  std::vector<uint8_t> assistant_mask;  // by id: 1 where the assistant speaks
};

// Thread-safe.
class ChatRenderer {
 public:
  // `source`: a template to use instead of the tokenizer's. UserError where there is none, or it cannot be parsed.
  explicit ChatRenderer(std::shared_ptr<const Tokenizer> tokenizer, std::optional<std::string> source = std::nullopt);

  std::string text(const Value& messages, const ChatOptions& options = {}) const;
  std::vector<TokenId> ids(const Value& messages, const ChatOptions& options = {}) const;
  // The mask comes from the template's {% generation %} blocks. Where it has none, each assistant message is found by
  // rendering the messages before it and those through it; both must be prefixes of the whole, else UserError: a mask
  // that is not proven is not given.
  RenderedChat with_mask(const Value& messages, const ChatOptions& options = {}) const;

  bool marks_generation() const;  // the template has {% generation %} blocks
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  Rendering render(const Value& messages, const ChatOptions& options) const;
  using Spans = std::vector<std::pair<int64_t, int64_t>>;
  Spans proven_spans(const Value& messages, const ChatOptions& options, const std::string& whole) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  ChatTemplate template_;
  bool marks_;
};

}  // namespace easydel::text
