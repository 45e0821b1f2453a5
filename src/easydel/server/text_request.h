// The bodies of /v1/completions, /tokenize, /detokenize and /apply-template.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/server/chat_request.h"
#include "easydel/server/request_fields.h"

namespace easydel::server {

struct TextOnlyFields {
  // Text, or a list of texts. Token ids are read before (read_value with a key), and then this is null.
  Value prompt = {};
  std::optional<std::string> suffix = {};
  bool echo = false, return_tokens_as_token_ids = false;
  std::optional<int64_t> logprobs = {};

  static constexpr auto doc = "Fields of completions alone.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::prompt>("The text to continue, as text, token ids, or a list of either."),
        field<&C::suffix>("The text after the answer."),
        field<&C::echo>("Put the prompt in front of the answer."),
        field<&C::return_tokens_as_token_ids>("Show tokens of log-probabilities as token_id:N."),
        field<&C::logprobs>("Number of most likely tokens for each token.", between(0, 20)),
    };
  }
  void settle(config::Keys& keys);
};

struct TextRequest {
  TextOnlyFields text;
  GenerationFields generation;
  static config::Section section();
};

struct TokenizeRequest {
  std::optional<std::string> model = {}, prompt = {};
  Value messages = {}, tools = {}, chat_template_kwargs = {};
  bool return_token_strs = false;
  std::optional<bool> add_special_tokens = {}, add_generation_prompt = {}, continue_final_message = {};

  static constexpr auto doc = "A text or a conversation whose token ids are wanted.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::model>("Name of the model; null: the only one."),
        field<&C::prompt>("The text."),
        field<&C::messages>("A conversation, instead of a text."),
        field<&C::tools>("Tools of the conversation."),
        field<&C::chat_template_kwargs>("Other variables of the chat template."),
        field<&C::add_special_tokens>("Add what the tokenizer puts around a text; null: only to a prompt."),
        field<&C::return_token_strs>("Return the tokens and where they are in the text, in addition to their ids."),
        field<&C::add_generation_prompt>("End a conversation where the assistant begins; null: yes."),
        field<&C::continue_final_message>("Leave the last message open."),
    };
  }
  void settle(config::Keys& keys);
};

struct DetokenizeRequest {
  std::optional<std::string> model = {};
  std::optional<bool> skip_special_tokens = {};

  static constexpr auto doc = "Token ids (`tokens`) whose text is wanted.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{field<&C::model>("Name of the model; null: the only one."),
                      field<&C::skip_special_tokens>("Leave special tokens out; null: no.")};
  }
};

}  // namespace easydel::server
