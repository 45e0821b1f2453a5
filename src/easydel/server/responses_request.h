// The body of /v1/responses, and what it asks as a request to answer a conversation.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/server/chat_request.h"
#include "easydel/server/request_fields.h"

namespace easydel::server {

struct ResponsesFields {
  Value input = {}, tools = {}, tool_choice = {}, text = {}, reasoning = {}, conversation = {};
  Value chat_template_kwargs = {}, prompt = {};
  std::optional<std::string> instructions = {}, previous_response_id = {}, truncation = {};
  std::optional<std::string> prompt_cache_key = {}, safety_identifier = {};
  std::optional<int64_t> max_output_tokens = {}, max_tool_calls = {}, top_logprobs = {}, thinking_budget = {};
  std::optional<bool> parallel_tool_calls = {}, store = {}, background = {}, enable_thinking = {};
  std::vector<std::string> include = {};

  static constexpr auto doc = "A request to create a response.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::input>("What was said so far: a text, or a list of items.", required()),
        field<&C::instructions>("The system message; that of an earlier response does not count any more."),
        field<&C::previous_response_id>("Go on after this stored response."),
        field<&C::conversation>("Name of a stored conversation to go on with, or an object with its id."),
        field<&C::tools>("Functions that may be called; at most 1024."),
        field<&C::tool_choice>("none, auto, required, a function or allowed_tools."),
        field<&C::parallel_tool_calls>("Whether an answer may have several calls."),
        field<&C::max_tool_calls>("Accepted; it limits built-in tools, of which there are none.", at_least(1)),
        field<&C::text>("The format of the answer: {\"format\": {\"type\": text, json_object or json_schema}}."),
        field<&C::reasoning>("Whether and how much the model thinks: {\"effort\": ...}."),
        field<&C::enable_thinking>("Whether the model thinks first, where its template has both."),
        field<&C::thinking_budget>("Tokens after which the reasoning is ended.", at_least(0)),
        field<&C::max_output_tokens>("Maximum number of tokens of an answer, with its reasoning.", at_least(1)),
        field<&C::top_logprobs>("Number of most likely tokens for each token.", between(0, 20)),
        field<&C::truncation>("auto: cut a conversation that is too long; disabled: refuse it."),
        field<&C::store>("Keep the response, so that it can be read and gone on with; null: the server's default."),
        field<&C::background>("Answer later; not supported."),
        field<&C::include>("More of the answer: message.output_text.logprobs, reasoning.encrypted_content."),
        field<&C::prompt>("A stored prompt; not supported."),
        field<&C::chat_template_kwargs>("Other variables of the chat template."),
        field<&C::prompt_cache_key>("Accepted; prefixes are shared whatever it is."),
        field<&C::safety_identifier>("A name for the client's own user."),
    };
  }
  void settle(config::Keys& keys);

  // The id of the stored conversation; empty: none.
  std::string conversation_id() const;
  bool wants_logprobs() const;
};

struct ResponsesRequest {
  ResponsesFields fields;
  GenerationFields generation;
  static config::Section section();
};

// The input as a list of items: a text is one message of the user.
Value input_items(const Value& input);

// Items as messages of a conversation: reasoning, text and calls that follow each other are one message of the
// assistant.
Value messages_of_items(const Value& items);

// The request to answer: `history` are the items before those of the request.
ChatRequest chat_request_of(const ResponsesRequest& request, const Value& history);

}  // namespace easydel::server
