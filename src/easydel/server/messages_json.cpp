#include "easydel/server/messages_json.h"

#include <utility>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/json_text.h"

namespace easydel::server {
namespace {

std::string message_event(std::string_view type, const std::string& members) {
  return str("event: ", type, "\ndata: {\"type\":\"", type, "\"", members.empty() ? "" : ",", members, "}\n\n");
}

std::string stop_reason_of(const ChatPiece& piece) {
  if (!piece.stop.empty()) return "\"stop_sequence\"";
  if (piece.finish_reason == "length") return "\"max_tokens\"";
  return piece.finish_reason == "tool_calls" ? "\"tool_use\"" : "\"end_turn\"";
}

// Tokens that were found in the cache do not count as input again.
std::string message_usage(const TokenUsage& usage) {
  return str(R"({"input_tokens":)", usage.prompt_tokens - usage.cached_tokens,
             R"(,"cache_creation_input_tokens":0,"cache_read_input_tokens":)", usage.cached_tokens,
             R"(,"output_tokens":)", usage.completion_tokens, R"(,"service_tier":"standard"})");
}

// The arguments of a call as an object. What is not one, because the answer was cut, is an empty one.
std::string input_object(const std::string& arguments) {
  try {
    return parse_json(arguments).is_map() ? arguments : "{}";
  } catch (const UserError&) {
    return "{}";
  }
}

}  // namespace

MessageWriter::MessageWriter(std::string id, std::string model)
    : id_(std::move(id)), model_(std::move(model)), usage_(message_usage({})) {}

std::string MessageWriter::block_json(const Block& block, bool empty) const {
  const std::string text = empty ? "\"\"" : json_text(block.text);
  switch (block.kind) {
    case Block::Kind::thinking:
      return R"({"type":"thinking","thinking":)" + text + R"(,"signature":""})";
    case Block::Kind::text:
      return R"({"type":"text","text":)" + text + "}";
    case Block::Kind::tool_use:
      return R"({"type":"tool_use","id":)" + json_text(block.id) + R"(,"name":)" + json_text(block.name) +
             R"(,"input":)" + (empty ? "{}" : input_object(block.text)) + "}";
  }
  return "";
}

std::string MessageWriter::head(const std::string& content) const {
  return str(R"({"id":)", json_text(id_), R"(,"type":"message","role":"assistant","model":)", json_text(model_),
             R"(,"content":[)", content, R"(],"stop_reason":)", stop_reason_, R"(,"stop_sequence":)", stop_sequence_,
             R"(,"usage":)", usage_, token_members_, "}");
}

std::string MessageWriter::object() const {
  std::string content;
  for (const Block& block : blocks_) content += (content.empty() ? "" : ",") + block_json(block, false);
  return head(content);
}

std::string MessageWriter::begin(const TokenUsage& usage) {
  usage_ = message_usage(usage);
  return message_event("message_start", R"("message":)" + head("")) + message_event("ping", "");
}

std::string MessageWriter::open(Block block) {
  blocks_.push_back(std::move(block));
  open_ = true;
  return message_event("content_block_start", str(R"("index":)", blocks_.size() - 1, R"(,"content_block":)",
                                                  block_json(blocks_.back(), true)));
}

std::string MessageWriter::close() {
  if (!std::exchange(open_, false)) return "";
  return message_event("content_block_stop", str(R"("index":)", blocks_.size() - 1));
}

std::string MessageWriter::delta(const std::string& members) const {
  return message_event("content_block_delta",
                       str(R"("index":)", blocks_.size() - 1, R"(,"delta":{"type":)", members, "}"));
}

std::string MessageWriter::add_text(Block::Kind kind, const std::string& text) {
  std::string out;
  if (!open_ || blocks_.back().kind != kind) {
    out = close();
    out += open({.kind = kind});
  }
  blocks_.back().text += text;
  const char* const type =
      kind == Block::Kind::thinking ? R"("thinking_delta","thinking":)" : R"("text_delta","text":)";
  return out + delta(type + json_text(text));
}

std::string MessageWriter::piece(const ChatPiece& piece) {
  std::string out;
  if (!piece.reasoning_content.empty()) out += add_text(Block::Kind::thinking, piece.reasoning_content);
  if (!piece.content.empty()) out += add_text(Block::Kind::text, piece.content);
  for (const ToolCallPiece& call : piece.tool_calls) {
    const bool goes_on = call.id.empty() && open_ && blocks_.back().kind == Block::Kind::tool_use &&
                         blocks_.back().call_index == call.index;
    if (!goes_on) {
      out += close();
      out += open({.kind = Block::Kind::tool_use, .id = call.id, .name = call.name, .call_index = call.index});
    }
    if (call.arguments.empty()) continue;
    blocks_.back().text += call.arguments;
    out += delta(R"("input_json_delta","partial_json":)" + json_text(call.arguments));
  }
  if (!piece.finish_reason.empty()) {
    stop_reason_ = stop_reason_of(piece);
    if (!piece.stop.empty()) stop_sequence_ = json_text(piece.stop);
  }
  return out;
}

std::string MessageWriter::end(const TokenUsage& usage, const std::string& token_members) {
  usage_ = message_usage(usage);
  token_members_ = token_members;
  return close() +
         message_event("message_delta", R"("delta":{"stop_reason":)" + stop_reason_ + R"(,"stop_sequence":)" +
                                            stop_sequence_ + R"(},"usage":)" + usage_ + token_members_) +
         message_event("message_stop", "");
}

std::string MessageWriter::fail(const ApiError& error, std::string_view request_id) const {
  return "event: error\ndata: " + error_body(error, "/v1/messages", request_id) + "\n\n";
}

}  // namespace easydel::server
