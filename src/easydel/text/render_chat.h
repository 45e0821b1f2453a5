// Renders a conversation to text, ids and the mask of the assistant's tokens, for training and chat. The template's
// context is that of transformers' apply_chat_template: messages, tools, add_generation_prompt, the special tokens as
// strings, and the caller's additional names.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/assistant_spans.h"
#include "easydel/text/chat_template.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

struct ChatOptions {
  Value tools = {};                    // a list of schemas; null: none
  bool add_generation_prompt = false;  // end where the assistant continues
  Value extra = {};                    // a map of additional names: enable_thinking, documents, ...
};

struct RenderedChat {
  std::string text;
  std::vector<TokenId> ids;             // of the text, without the tokenizer's own BOS and EOS
  std::vector<uint8_t> assistant_mask;  // for each id: 1 if the assistant wrote it
  // [first, last) ids of each part that the assistant wrote, empty ones too; a message may have several.
  std::vector<std::pair<size_t, size_t>> assistant_spans;
};

// A rendered conversation with the message that each token belongs to. Positions are in characters.
struct RenderedTurns {
  std::u32string text;
  std::vector<TokenId> ids;                             // of the text, without the tokenizer's own BOS and EOS
  std::vector<std::pair<int64_t, int64_t>> offsets;     // of each id in the text
  std::vector<uint8_t> special;                         // for each id: 1 if it is a special token
  std::vector<int32_t> messages;                        // for each id: index of the message, with its header; -1: none
  std::vector<int32_t> authors;                         // the same without headers: what the message's role wrote
  std::vector<std::pair<int64_t, int64_t>> characters;  // of each message, what its role wrote; empty: not found

  // The first place of `part` in [from, to).
  std::optional<std::pair<int64_t, int64_t>> find(const std::string& part, int64_t from, int64_t to) const;
};

// Thread-safe.
class ChatRenderer {
 public:
  // `source`: a template that replaces the tokenizer's. UserError: there is no template, or it cannot be parsed.
  explicit ChatRenderer(std::shared_ptr<const Tokenizer> tokenizer, std::optional<std::string> source = std::nullopt);

  std::string text(const Value& messages, const ChatOptions& options = {}) const;
  // UserError also if a message has an image, a video or a sound.
  std::vector<TokenId> ids(const Value& messages, const ChatOptions& options = {}) const;
  // The mask comes from the template's {% generation %} blocks. If it has none, from what its loop over the messages
  // writes for each (assistant_spans.h); for other templates, each assistant message is located by rendering the
  // messages before it, and the messages including it; both must be prefixes of the whole text. UserError if they are
  // not, because then the mask cannot be determined.
  RenderedChat with_mask(const Value& messages, const ChatOptions& options = {}) const;

  // What the assistant wrote is found as by with_mask, with the same errors; what others wrote is their content as the
  // template writes it, up to the end of its turn.
  RenderedTurns with_turns(const Value& messages, const ChatOptions& options = {}) const;

  bool marks_generation() const;  // the template has {% generation %} blocks
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  Rendering render(const Value& messages, const ChatOptions& options, bool traced = false) const;
  const std::string& header() const;  // of the assistant's turns; found at the first call
  Spans spans_in(const Rendering& rendering, const Value& messages, const ChatOptions& options) const;
  Spans proven_spans(const Value& messages, const ChatOptions& options, const std::string& whole) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string source_;
  ChatTemplate template_;
  bool marks_;
  mutable std::once_flag header_once_;
  mutable std::string header_;
};

}  // namespace easydel::text
