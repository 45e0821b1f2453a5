// The body of /v1/chat/completions, and of the routes that render or count a conversation.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "easydel/server/request_fields.h"

namespace easydel::server {

// A conversation and what the chat template gets with it. Messages stay documents, as templates take them; they were
// checked.
struct ConversationFields {
  Value messages = {}, tools = {}, chat_template_kwargs = {}, documents = {};
  std::optional<bool> add_generation_prompt = {}, continue_final_message = {}, enable_thinking = {};
  std::optional<std::string> reasoning_effort = {}, chat_template = {};

  static constexpr auto doc = "A conversation.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::messages>("What was said so far: a list of messages with role and content.", required()),
        field<&C::tools>("Functions that may be called, with JSON schemas of their arguments; at most 1024."),
        field<&C::chat_template_kwargs>("Other variables of the chat template."),
        field<&C::documents>("Documents for the chat template."),
        field<&C::add_generation_prompt>("End the text where the assistant begins; null: yes."),
        field<&C::continue_final_message>("Let the answer continue the last message."),
        field<&C::enable_thinking>("Whether the model thinks first, where its template has both."),
        field<&C::reasoning_effort>("How much the model thinks: none, minimal, low, medium, high or xhigh."),
        field<&C::chat_template>("A template for this request; refused unless the server allows it."),
    };
  }
  void settle(config::Keys& keys);
};

struct ChatOnlyFields {
  std::optional<int64_t> max_completion_tokens = {}, top_logprobs = {}, thinking_budget = {};
  std::optional<bool> logprobs = {}, parallel_tool_calls = {}, store = {};
  bool echo = false;
  Value tool_choice = {}, response_format = {}, functions = {}, function_call = {};

  static constexpr auto doc = "Fields of chats alone.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_completion_tokens>("Maximum number of tokens of an answer, with its reasoning.", at_least(1)),
        field<&C::top_logprobs>("Number of most likely tokens for each token.", between(0, 20)),
        field<&C::thinking_budget>("Tokens after which the reasoning is ended.", at_least(0)),
        field<&C::logprobs>("Return log-probabilities of the content's tokens."),
        field<&C::parallel_tool_calls>("Whether an answer may have several calls."),
        field<&C::store>("Accepted; chats are not stored."),
        field<&C::echo>("Put the last message in front of the answer."),
        field<&C::tool_choice>("none, auto, required, or the name of a tool."),
        field<&C::response_format>("text, json_object, or a JSON schema that the content follows."),
        field<&C::functions>("Old form of tools."),
        field<&C::function_call>("Old form of tool_choice."),
    };
  }
  void settle(config::Keys& keys);
};

struct ChatRequest {
  ConversationFields conversation;
  ChatOnlyFields chat;
  GenerationFields generation;
  // Where the body has the schema of response_format; other routes have it elsewhere.
  std::string schema_field = "response_format.json_schema.schema";

  // max_completion_tokens, or max_tokens.
  std::optional<int64_t> max_tokens() const;
  void check_together(config::Keys& keys) const;  // what no part can see
  static config::Section section();
};

constexpr std::array<std::string_view, 6> efforts = {"none", "minimal", "low", "medium", "high", "xhigh"};

// Adds what is wrong with a list of messages, below `path`.
void check_messages(const Value& messages, const std::string& path, config::Problems& problems);
void check_tools(const Value& tools, const std::string& path, config::Problems& problems);

}  // namespace easydel::server
