// An answer as Anthropic's message and as its stream of events, byte for byte. Pure functions of what they are given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/server/completion_json.h"

namespace easydel::server {

// Writes one message. Pieces come in the order in which the model wrote them; thinking, text and each call become
// blocks. Without a stream its events are not used, and object() is the answer: so both are the same.
class MessageWriter {
 public:
  // id: "msg_...". logprobs of pieces are not shown: Anthropic's messages have none.
  MessageWriter(std::string id, std::string model);

  std::string begin(const TokenUsage& usage);  // only the prompt's tokens count
  std::string piece(const ChatPiece& piece);
  // `token_members`: of the message, about its tokens (single_answer.h).
  std::string end(const TokenUsage& usage, const std::string& token_members = "");
  std::string fail(const ApiError& error, std::string_view request_id) const;

  std::string object() const;

 private:
  struct Block {
    enum class Kind : uint8_t { thinking, text, tool_use } kind;
    std::string text = {};  // also the input of a call, as JSON
    std::string id = {}, name = {};
    int64_t call_index = 0;
  };
  std::string open(Block block);
  std::string close();
  std::string add_text(Block::Kind kind, const std::string& text);
  std::string delta(const std::string& members) const;
  std::string block_json(const Block& block, bool empty) const;
  std::string head(const std::string& content) const;

  std::string id_, model_;
  std::vector<Block> blocks_;
  bool open_ = false;  // the last block
  std::string stop_reason_ = "null", stop_sequence_ = "null", usage_ = {}, token_members_ = {};
};

}  // namespace easydel::server
