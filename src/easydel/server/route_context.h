// What the routes that use a model have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/server/answer_job.h"
#include "easydel/server/api.h"
#include "easydel/server/chat_reader.h"
#include "easydel/server/chat_request.h"
#include "easydel/server/sampling.h"
#include "easydel/server/serve_config.h"
#include "easydel/server/served_model.h"

namespace easydel::server {

class EncodeQueue;

// All must outlive the Api's server.
struct RouteContext {
  const ServeConfig& config;
  const ModelList& models;
  AnswerJobs& jobs;
  EncodeQueue& encodes;
};

// Each adds its routes. Before the server starts.
void add_chat_route(Api& api, const RouteContext& context);  // /v1/chat/completions
// /v1/embeddings, rerank, score, classify
void add_embedding_routes(Api& api, const RouteContext& context);
void add_completion_route(Api& api, const RouteContext& context);  // /v1/completions
// /tokenize and the like, /props, /v1/tools, the engines' metrics, and the administration of what is generated and
// cached.
void add_model_routes(Api& api, const RouteContext& context);

// /v1/adapters and vLLM's routes for them.
void add_adapter_routes(Api& api, const RouteContext& context);

// /v1/admin/weights. `models`: those of the context.
void add_weights_route(Api& api, const RouteContext& context, ModelList& models);

RequestRules rules_of(const ServeConfig& config);

// Reads a body's fields; those that are unknown are counted for the call.
template <config::Sectioned T>
T read_fields(Call& call, Value body, const RequestRules& rules) {
  std::vector<std::string> passed_over;
  T out = read_request<T>(std::move(body), rules, passed_over);
  call.record.unknown_fields = int64_t(passed_over.size());
  return out;
}

// What a key must allow, besides the route itself.
struct Asked {
  bool stream = false, tools = false;
  int64_t tokens = 0;  // that may be generated, of all answers together
};
// Refusal: the state of the server, the model's name, or the key's permissions do not allow it.
std::shared_ptr<const ServedModel> model_for(const RouteContext& context, const Api& api, const Call& call,
                                             const std::optional<std::string>& name);
void check_permissions(const Call& call, const Asked& asked);
// Requests of different keys share no cached prefix, unless shared_prefix_cache is set.
void separate_prefixes(const RouteContext& context, const Call& call, esurge::SamplingParams& sampling);
// The header that says how many tokens of a prompt were cut off; none if it is whole.
std::vector<Header> truncation_headers(int64_t truncated_tokens);

int64_t seconds_since_1970();

// A conversation as the model sees it.
struct ConversationPrompt {
  std::string text = {};
  std::vector<text::TokenId> ids = {};
  std::string begun = {};  // the part of the answer that the prompt ends with
  std::vector<size_t> breaks =
      {};  // where `text` is not a special token, though it spells one (Tokenizer::encode_with_breaks)
};
// Refusal: the model has no chat template, or the template cannot be used. UserError with the path of a field.
ConversationPrompt render_conversation(const ServeConfig& config, const ServedModel& model,
                                       const ConversationFields& fields);
// How the answer to a conversation is read: which tools it may call, and what stands for reasoning.
ChatReading chat_reading(std::shared_ptr<const ServedModel> model, const ConversationFields& fields,
                         ConversationPrompt prompt, bool calls_are_parsed);

}  // namespace easydel::server
