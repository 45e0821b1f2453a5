// The body of Anthropic's /v1/messages and /v1/messages/count_tokens, and what it asks as a request to answer a
// conversation.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/server/chat_request.h"
#include "easydel/server/request_fields.h"

namespace easydel::server {

// What both routes read.
struct MessagesFields {
  std::optional<std::string> model = {};
  Value messages = {}, system = {}, tools = {}, tool_choice = {}, thinking = {}, output_config = {};
  Value chat_template_kwargs = {};

  static constexpr auto doc = "A conversation in Anthropic's form.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::model>("Name of the model or adapter; null: the only model."),
        field<&C::messages>("What was said so far: messages of user and assistant, with text or blocks.", required()),
        field<&C::system>("The system message, as text or a list of text blocks."),
        field<&C::tools>("Functions that may be called, each with name and input_schema; at most 1024."),
        field<&C::tool_choice>("{\"type\": auto, any, none or tool}, with the name of a tool."),
        field<&C::thinking>("{\"type\": enabled, adaptive or disabled}, with budget_tokens."),
        field<&C::output_config>("{\"format\": {\"type\": \"json_schema\", \"schema\": ...}}: what the text follows."),
        field<&C::chat_template_kwargs>("Other variables of the chat template."),
    };
  }
  void settle(config::Keys& keys);
};

struct MessagesOnlyFields {
  int64_t max_tokens = 0;
  std::vector<std::string> stop_sequences = {};

  static constexpr auto doc = "Fields of messages alone.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_tokens>("Maximum number of tokens of an answer, with its thinking.", required(), at_least(1)),
        field<&C::stop_sequences>("Strings that end an answer; at most 64 of at most 1024 bytes."),
    };
  }
  void settle(config::Keys& keys);
};

struct MessagesRequest {
  MessagesFields fields;
  MessagesOnlyFields only;
  GenerationFields generation;
  static config::Section section();
};

ChatRequest chat_request_of(const MessagesFields& fields);  // to count tokens
ChatRequest chat_request_of(const MessagesRequest& request);

}  // namespace easydel::server
