// Answers of the engine as OpenAI's objects and stream events, byte for byte. Pure functions of what they are given:
// sending is not their business.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/server/api_error.h"

namespace easydel::server {

// What all chunks of an answer have in common.
struct CompletionHead {
  std::string id = {};  // "chatcmpl-..." or "cmpl-..."
  int64_t created = 0;
  std::string model = {}, system_fingerprint = {};
};

struct TokenUsage {
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0, reasoning_tokens = 0, truncated_tokens = 0;
  int64_t accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
  double tokens_per_second = 0, processing_time = 0;  // seconds
  bool shows_timings = false;
  double prompt_seconds = 0, generation_seconds = 0;  // the first to the first token, with the time of waiting
};

struct LogprobEntry {
  std::string token = {};  // text; bytes that are not UTF-8 are shown as U+FFFD
  std::string bytes = {};  // exactly
  float logprob = 0;
};
struct TokenLogprobEntry {
  LogprobEntry chosen = {};
  std::vector<LogprobEntry> top = {};
};

// A piece of a tool call. The first of a call has id and name; the others only arguments.
struct ToolCallPiece {
  int64_t index = 0;
  std::string id = {}, name = {}, arguments = {};
};

// What a chat's choice has, or what is new of it in a stream.
struct ChatPiece {
  int64_t index = 0;  // of the choice
  std::string content = {}, reasoning_content = {};
  std::vector<ToolCallPiece> tool_calls = {};
  std::vector<TokenLogprobEntry> logprobs = {};
  std::optional<std::vector<int32_t>> token_ids = {};  // of the answer; null: not wanted
  std::string finish_reason = {};                      // "stop", "length", "tool_calls"; empty: it goes on
  std::string stop = {};                               // the stop string that ended it; empty: something else did
};

// The same of a completion. `tokens` and so on only where log-probs were asked for.
struct TextPiece {
  int64_t index = 0;
  std::string text = {};
  // Of each token: its key in the lists, its log-prob (none for the first token of a prompt), the most likely ones, and
  // where its text begins, in characters from the beginning of the whole text.
  struct Token {
    std::string token = {};
    std::optional<float> logprob = {};
    std::vector<std::pair<std::string, float>> top = {};
    int64_t text_offset = 0;
  };
  std::vector<Token> tokens = {};
  bool has_logprobs = false;
  std::optional<std::vector<int32_t>> token_ids = {};  // of the answer; null: not wanted
  std::string prompt_members = {};                     // of the choice's object (prompt_tokens.h); empty: none
  std::string finish_reason = {};
};

// `prompt_members`: of the object, about its prompt (prompt_tokens.h); empty: none.
std::string chat_completion(const CompletionHead& head, const std::vector<ChatPiece>& choices, bool logprobs,
                            const TokenUsage& usage, const std::string& prompt_members = "");
std::string text_completion(const CompletionHead& head, const std::vector<TextPiece>& choices, const TokenUsage& usage);

// Writes the events of one answer, each as "data: {...}\n\n".
class CompletionStream {
 public:
  enum class Kind : uint8_t { chat, text };
  // include_usage: stream_options.include_usage; continuous: continuous_usage_stats.
  CompletionStream(Kind kind, CompletionHead head, bool logprobs, bool include_usage, bool continuous);

  void set_fingerprint(const std::string& fingerprint) { head_.system_fingerprint = fingerprint; }
  // Of a chat's choice: its role, and members of the chunk about the prompt.
  std::string begin(int64_t index, const std::string& prompt_members = "") const;
  std::string piece(const ChatPiece& piece,
                    const TokenUsage& usage) const;  // a delta, then the finish reason if it has one
  std::string piece(const TextPiece& piece, const TokenUsage& usage) const;
  std::string end(const TokenUsage& usage) const;  // the usage if it was asked for, and [DONE]
  // An error after the first byte: an event with the error, and [DONE].
  std::string fail(const ApiError& error, std::string_view path, std::string_view request_id) const;

 private:
  std::string chunk(const std::string& choices, const TokenUsage* usage, const std::string& members = "") const;
  std::string choice(int64_t index, const std::string& delta, const std::string& logprobs,
                     const std::string& finish_reason, const std::string& members = "") const;
  Kind kind_;
  CompletionHead head_;
  bool logprobs_, include_usage_, continuous_;
};

// Adds ids that are new to those that were there.
void append_ids(std::optional<std::vector<int32_t>>& whole, std::optional<std::vector<int32_t>> ids);
std::string id_list_text(std::span<const int32_t> ids);  // "[1,2]"
// The list of content's log-probs in chats and responses.
std::string logprob_list(const std::vector<TokenLogprobEntry>& tokens);
// The shortest text that reads back as the same float; -inf is -9999.0, as in OpenAI's answers.
std::string logprob_text(float logprob);
std::string new_completion_id(std::string_view prefix);  // "chatcmpl-" and 24 random letters

}  // namespace easydel::server
