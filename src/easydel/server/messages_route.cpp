// POST /v1/messages and /v1/messages/count_tokens.
#include <memory>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/server/conversation_answer.h"
#include "easydel/server/messages_json.h"
#include "easydel/server/messages_request.h"
#include "easydel/server/single_answer.h"

namespace easydel::server {
namespace {

class MessageAnswer final : public SingleAnswer {
 public:
  MessageAnswer(ConversationAnswer& answer, const GenerationFields& fields)
      : SingleAnswer(answer.reading, fields, truncation_headers(answer.truncated_tokens)),
        prompt_tokens_(answer.prompt_tokens),
        writer_(new_completion_id("msg_"), answer.model->id) {}

 private:
  std::string begin_events() override { return writer_.begin({.prompt_tokens = prompt_tokens_}); }
  std::string piece_events(const ChatPiece& piece) override { return writer_.piece(piece); }
  std::string end_events(const TokenUsage& usage) override { return writer_.end(usage, token_members()); }
  std::string fail_events(const Call& call, const ApiError& error) override { return writer_.fail(error, call.id()); }
  std::string object() const override { return writer_.object(); }

  int64_t prompt_tokens_;
  MessageWriter writer_;
};

void answer_message(const RouteContext& context, const Api& api, const std::shared_ptr<Call>& call) {
  const auto request = read_fields<MessagesRequest>(*call, call->body(), rules_of(context.config));
  ConversationAnswer answer = prepare_conversation(context, api, *call, chat_request_of(request));
  auto writer = std::make_unique<MessageAnswer>(answer, request.generation);
  context.jobs.start(call, answer.model, std::move(answer.parts), std::move(writer));
}

void count_tokens(const RouteContext& context, const Api& api, const std::shared_ptr<Call>& call) {
  const auto fields = read_fields<MessagesFields>(*call, call->body(), rules_of(context.config));
  const auto model = model_for(context, api, *call, fields.model);
  const ConversationPrompt prompt = render_conversation(context.config, *model, chat_request_of(fields).conversation);
  call->record.model = model->id;
  call->record.prompt_tokens = int64_t(prompt.ids.size());
  call->respond_json(200, str(R"({"input_tokens":)", prompt.ids.size(), "}"));
}

}  // namespace

void add_message_routes(Api& api, const RouteContext& context) {
  api.serve("POST /v1/messages", [&api, context](std::shared_ptr<Call> call) { answer_message(context, api, call); });
  api.serve("POST /v1/messages/count_tokens",
            [&api, context](std::shared_ptr<Call> call) { count_tokens(context, api, call); });
}

}  // namespace easydel::server
