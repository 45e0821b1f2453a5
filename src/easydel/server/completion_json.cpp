#include "easydel/server/completion_json.h"

#include <array>
#include <charconv>
#include <cmath>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/base/sha256.h"

namespace easydel::server {
namespace {

template <class Items, class Write>
std::string joined(const Items& items, Write write) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ",") + write(item);
  return out;
}

std::string text_or_null(const std::string& text) { return text.empty() ? "null" : json_text(text); }

std::string usage_json(const TokenUsage& usage) {
  return str(R"({"prompt_tokens":)", usage.prompt_tokens, R"(,"completion_tokens":)", usage.completion_tokens,
             R"(,"total_tokens":)", usage.prompt_tokens + usage.completion_tokens,
             R"(,"prompt_tokens_details":{"cached_tokens":)", usage.cached_tokens, R"(,"truncated_tokens":)",
             usage.truncated_tokens, R"(},"completion_tokens_details":{"reasoning_tokens":)", usage.reasoning_tokens,
             R"(,"accepted_prediction_tokens":)", usage.accepted_prediction_tokens, R"(,"rejected_prediction_tokens":)",
             usage.rejected_prediction_tokens, R"(},"tokens_per_second":)",
             Value::number(usage.tokens_per_second).scalar, R"(,"processing_time":)",
             Value::number(usage.processing_time).scalar, "}");
}

// Members of an answer that asked for them, by the names of llama.cpp's server.
std::string timings_member(const TokenUsage& usage) {
  if (!usage.shows_timings) return "";
  const auto rate = [](int64_t tokens, double seconds) {
    return Value::number(seconds > 0 ? double(tokens) / seconds : 0).scalar;
  };
  const int64_t computed = usage.prompt_tokens - usage.cached_tokens;
  return str(R"(,"timings":{"cache_n":)", usage.cached_tokens, R"(,"prompt_n":)", computed, R"(,"prompt_ms":)",
             Value::number(usage.prompt_seconds * 1000).scalar, R"(,"prompt_per_second":)",
             rate(computed, usage.prompt_seconds), R"(,"predicted_n":)", usage.completion_tokens, R"(,"predicted_ms":)",
             Value::number(usage.generation_seconds * 1000).scalar, R"(,"predicted_per_second":)",
             rate(usage.completion_tokens, usage.generation_seconds), "}");
}

std::string entry_fields(const LogprobEntry& entry) {
  return str(R"("token":)", json_text(entry.token), R"(,"logprob":)", logprob_text(entry.logprob), R"(,"bytes":[)",
             joined(entry.bytes, [](char byte) { return std::to_string(int(uint8_t(byte))); }), "]");
}

std::string chat_logprobs(const std::vector<TokenLogprobEntry>& tokens) {
  return R"({"content":)" + logprob_list(tokens) + R"(,"refusal":null})";
}

std::string text_logprobs(const TextPiece& piece) {
  if (!piece.has_logprobs) return "null";
  using Token = TextPiece::Token;
  const auto list = [&](auto write) { return "[" + joined(piece.tokens, write) + "]"; };
  const auto top = [](const Token& token) -> std::string {
    if (!token.logprob) return "null";
    return "{" +
           joined(token.top,
                  [](const auto& entry) { return json_text(entry.first) + ":" + logprob_text(entry.second); }) +
           "}";
  };
  return str(R"({"tokens":)", list([](const Token& token) { return json_text(token.token); }), R"(,"token_logprobs":)",
             list([](const Token& token) { return token.logprob ? logprob_text(*token.logprob) : "null"; }),
             R"(,"top_logprobs":)", list(top), R"(,"text_offset":)",
             list([](const Token& token) { return std::to_string(token.text_offset); }), "}");
}

std::string token_ids_member(const std::optional<std::vector<int32_t>>& ids) {
  return ids ? R"(,"token_ids":)" + id_list_text(*ids) : "";
}

std::string tool_call(const ToolCallPiece& call, bool streamed) {
  const bool first = !call.id.empty();
  std::string out = "{";
  if (streamed) out += str(R"("index":)", call.index, ",");
  if (first) out += R"("id":)" + json_text(call.id) + R"(,"type":"function",)";
  out += R"("function":{)";
  if (first) out += R"("name":)" + json_text(call.name) + ",";
  return out + R"("arguments":)" + json_text(call.arguments) + "}}";
}

std::string tool_calls(const std::vector<ToolCallPiece>& calls, bool streamed) {
  return "[" + joined(calls, [streamed](const ToolCallPiece& call) { return tool_call(call, streamed); }) + "]";
}

std::string head_fields(const CompletionHead& head, std::string_view object) {
  return str(R"("id":)", json_text(head.id), R"(,"object":")", object, R"(","created":)", head.created, R"(,"model":)",
             json_text(head.model), R"(,"system_fingerprint":)", text_or_null(head.system_fingerprint));
}

std::string event(const std::string& json) { return "data: " + json + "\n\n"; }
constexpr std::string_view last_event = "data: [DONE]\n\n";

}  // namespace

void append_ids(std::optional<std::vector<int32_t>>& whole, std::optional<std::vector<int32_t>> ids) {
  if (!whole)
    whole = std::move(ids);
  else if (ids)
    whole->insert(whole->end(), ids->begin(), ids->end());
}

std::string id_list_text(std::span<const int32_t> ids) {
  return "[" + joined(ids, [](int32_t id) { return std::to_string(id); }) + "]";
}

std::string logprob_text(float logprob) {
  if (!std::isfinite(logprob)) return "-9999.0";
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), logprob);
  return {text.data(), result.ptr};
}

std::string logprob_list(const std::vector<TokenLogprobEntry>& tokens) {
  const auto entry = [](const LogprobEntry& one) { return "{" + entry_fields(one) + "}"; };
  const auto write = [&entry](const TokenLogprobEntry& token) {
    return "{" + entry_fields(token.chosen) + R"(,"top_logprobs":[)" + joined(token.top, entry) + "]}";
  };
  return "[" + joined(tokens, write) + "]";
}

std::string new_completion_id(std::string_view prefix) {
  static constexpr std::string_view letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string out(prefix);
  for (const unsigned char byte : files::random_bytes(24)) out += letters[byte % letters.size()];
  return out;
}

std::string chat_completion(const CompletionHead& head, const std::vector<ChatPiece>& choices, bool logprobs,
                            const TokenUsage& usage, const std::string& prompt_members) {
  const auto choice = [logprobs](const ChatPiece& piece) {
    // A call or nothing but reasoning has no content; an empty answer has an empty one.
    const bool without = piece.content.empty() && (!piece.tool_calls.empty() || !piece.reasoning_content.empty());
    std::string message =
        R"({"role":"assistant","content":)" + (without ? "null" : json_text(piece.content)) + R"(,"refusal":null)";
    if (!piece.reasoning_content.empty()) message += R"(,"reasoning_content":)" + json_text(piece.reasoning_content);
    if (!piece.tool_calls.empty()) message += R"(,"tool_calls":)" + tool_calls(piece.tool_calls, false);
    return str(R"({"index":)", piece.index, R"(,"message":)", message, R"(},"logprobs":)",
               logprobs ? chat_logprobs(piece.logprobs) : "null", R"(,"finish_reason":)",
               text_or_null(piece.finish_reason), token_ids_member(piece.token_ids), "}");
  };
  return "{" + head_fields(head, "chat.completion") + R"(,"choices":[)" + joined(choices, choice) + R"(],"usage":)" +
         usage_json(usage) + timings_member(usage) + prompt_members + "}";
}

std::string text_completion(const CompletionHead& head, const std::vector<TextPiece>& choices,
                            const TokenUsage& usage) {
  const auto choice = [](const TextPiece& piece) {
    return str(R"({"index":)", piece.index, R"(,"text":)", json_text(piece.text), R"(,"logprobs":)",
               text_logprobs(piece), R"(,"finish_reason":)", text_or_null(piece.finish_reason),
               token_ids_member(piece.token_ids), piece.prompt_members, "}");
  };
  return "{" + head_fields(head, "text_completion") + R"(,"choices":[)" + joined(choices, choice) + R"(],"usage":)" +
         usage_json(usage) + timings_member(usage) + "}";
}

CompletionStream::CompletionStream(Kind kind, CompletionHead head, bool logprobs, bool include_usage, bool continuous)
    : kind_(kind),
      head_(std::move(head)),
      logprobs_(logprobs),
      include_usage_(include_usage),
      continuous_(include_usage && continuous) {}

std::string CompletionStream::chunk(const std::string& choices, const TokenUsage* usage,
                                    const std::string& members) const {
  const std::string_view object = kind_ == Kind::chat ? "chat.completion.chunk" : "text_completion";
  std::string out = "{" + head_fields(head_, object) + R"(,"choices":[)" + choices + "]";
  if (include_usage_) out += R"(,"usage":)" + (usage ? usage_json(*usage) : "null");
  return event(out + members + "}");
}

std::string CompletionStream::choice(int64_t index, const std::string& delta, const std::string& logprobs,
                                     const std::string& finish_reason, const std::string& members) const {
  return str(R"({"index":)", index, ",", delta, R"(,"logprobs":)", logprobs, R"(,"finish_reason":)",
             text_or_null(finish_reason), members, "}");
}

std::string CompletionStream::begin(int64_t index, const std::string& prompt_members) const {
  check(kind_ == Kind::chat, "only a chat's choice has a role");
  return chunk(choice(index, R"("delta":{"role":"assistant","content":""})", "null", ""), nullptr, prompt_members);
}

std::string CompletionStream::piece(const ChatPiece& piece, const TokenUsage& usage) const {
  const TokenUsage* const shown = continuous_ ? &usage : nullptr;
  std::string delta;
  const auto add = [&delta](const std::string& member) { delta += (delta.empty() ? "" : ",") + member; };
  if (!piece.reasoning_content.empty()) add(R"("reasoning_content":)" + json_text(piece.reasoning_content));
  if (!piece.content.empty()) add(R"("content":)" + json_text(piece.content));
  if (!piece.tool_calls.empty()) add(R"("tool_calls":)" + tool_calls(piece.tool_calls, true));
  std::string out;
  // Log-probs and ids of tokens without text, such as the end token, come with an empty delta.
  const bool has_logprobs = logprobs_ && !piece.logprobs.empty();
  const bool has_ids = piece.token_ids && !piece.token_ids->empty();
  if (!delta.empty() || has_logprobs || has_ids)
    out = chunk(choice(piece.index, R"("delta":{)" + delta + "}", has_logprobs ? chat_logprobs(piece.logprobs) : "null",
                       "", has_ids ? token_ids_member(piece.token_ids) : ""),
                shown);
  if (piece.finish_reason.empty()) return out;
  return out + chunk(choice(piece.index, R"("delta":{})", "null", piece.finish_reason), shown, timings_member(usage));
}

std::string CompletionStream::piece(const TextPiece& piece, const TokenUsage& usage) const {
  return chunk(choice(piece.index, R"("text":)" + json_text(piece.text), text_logprobs(piece), piece.finish_reason,
                      token_ids_member(piece.token_ids) + piece.prompt_members),
               continuous_ ? &usage : nullptr, piece.finish_reason.empty() ? "" : timings_member(usage));
}

std::string CompletionStream::end(const TokenUsage& usage) const {
  return (include_usage_ ? chunk("", &usage) : "") + std::string(last_event);
}

std::string CompletionStream::fail(const ApiError& error, std::string_view path, std::string_view request_id) const {
  return event(error_body(error, path, request_id)) + std::string(last_event);
}

}  // namespace easydel::server
