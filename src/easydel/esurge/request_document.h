// The keys of a request that is written as a document; for request.cpp and the table alone.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/esurge/sampling_params.h"

namespace easydel::esurge {

struct RequestDocument {
  Value prompt = {}, negative_prompt = {}, messages = {}, tools = {}, chat_template_kwargs = {};
  std::optional<std::vector<int64_t>> prompt_token_ids = {}, continuation_token_ids = {};
  SamplingParams sampling = {};
  std::optional<std::string> request_id = {}, cache_salt = {}, adapter = {};
  std::optional<int64_t> priority = {};
  bool pooled = false;
  std::optional<double> timeout_seconds = {};

  static constexpr auto doc = "A request to the engine.";
  template <class R>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&R::prompt>("The prompt, as text or as token ids."),
        field<&R::prompt_token_ids>("The prompt as token ids."),
        field<&R::messages>("The prompt as a conversation, which the model's chat template renders."),
        field<&R::tools>("Tools of a conversation, as JSON schemas."),
        field<&R::chat_template_kwargs>("Other variables of the chat template."),
        field<&R::continuation_token_ids>(
            "Token ids whose log-probabilities after the prompt are given, instead of an answer."),
        field<&R::pooled>("Give the prompt's vector (an embedding, or scores of classes) instead of an answer."),
        field<&R::negative_prompt>("Negative prompt of guidance_scale, as text or as token ids; null: the prompt's "
                                   "last token."),
        field<&R::sampling>("How the answer is chosen."),
        field<&R::request_id>("The caller's name for the request; its results have it."),
        field<&R::priority>("The same key of sampling."),
        field<&R::cache_salt>("The same key of sampling."),
        field<&R::timeout_seconds>("The same key of sampling.", above(0)),
        field<&R::adapter>("The same key of sampling."),
    };
  }
  void settle(config::Keys& keys);
};

}  // namespace easydel::esurge
