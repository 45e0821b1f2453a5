// What all routes that answer conversations do: from a chat's request to a request of the engine.
#pragma once

#include <memory>
#include <vector>

#include "easydel/server/route_context.h"

namespace easydel::server {

class ResponseStore;

struct ConversationAnswer {
  std::shared_ptr<const ServedModel> model = nullptr;
  std::shared_ptr<const ChatReading> reading = nullptr;
  std::vector<AnswerPart> parts = {};  // one
  int64_t prompt_tokens = 0, truncated_tokens = 0;

  const esurge::SamplingParams& sampling() const { return parts.front().request.sampling; }
};

// Renders the conversation, checks what the key allows, and constrains the answer as tool_choice and response_format
// ask. UserError, Refusal: it cannot be served.
ConversationAnswer prepare_conversation(const RouteContext& context, const Api& api, const Call& call,
                                        ChatRequest request);

// Each adds its routes. Before the server starts; the store must outlive it.
void add_message_routes(Api& api, const RouteContext& context);
void add_response_routes(Api& api, const RouteContext& context, ResponseStore& store);

}  // namespace easydel::server
