// POST /v1/chat/completions.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/server/chat_reader.h"
#include "easydel/server/completion_json.h"
#include "easydel/server/conversation_answer.h"
#include "easydel/server/prompt_tokens.h"
#include "easydel/server/route_context.h"

namespace easydel::server {
namespace {

class ChatWriter final : public AnswerWriter {
 public:
  ChatWriter(std::shared_ptr<const ChatReading> reading, const GenerationFields& fields, CompletionHead head,
             std::vector<Header> headers)
      : reading_(std::move(reading)),
        head_(std::move(head)),
        headers_(std::move(headers)),
        streamed_(fields.stream),
        shows_ids_(fields.return_token_ids),
        prompt_(reading_->model->tokenizer, reading_->prompt, fields),
        stream_(CompletionStream::Kind::chat, head_, reading_->top_logprobs.has_value(),
                fields.stream_options && fields.stream_options->include_usage,
                fields.stream_options && fields.stream_options->continuous_usage_stats) {
    for (int64_t i = 0; i < fields.n.value_or(1); ++i) {
      readers_.emplace_back(reading_, i);
      whole_.push_back({.index = i});
    }
  }

  void set_fingerprint(const std::string& fingerprint) override {
    head_.system_fingerprint = fingerprint;
    stream_.set_fingerprint(fingerprint);
  }

  void begin(Call& call) override {
    if (!streamed_) return;
    call.begin_events(headers_);
    if (!prompt_.has_logprobs()) call.exchange().write(first_events({}));
  }

  void add(Call& call, size_t, const esurge::RequestOutput& output, const TokenUsage& usage) override {
    std::string events;
    // The log-probabilities of the prompt come with the first result.
    if (streamed_ && prompt_.has_logprobs() && !std::exchange(begun_, true))
      events = first_events(output.prompt_logprobs);
    for (const esurge::CompletionOutput& one : output.outputs) {
      ChatPiece& whole = whole_[size_t(one.index)];
      if (!whole.finish_reason.empty()) continue;
      ChatPiece piece = readers_[size_t(one.index)].read(one);
      if (shows_ids_) piece.token_ids = one.token_ids;
      if (streamed_) events += stream_.piece(piece, with_reasoning(usage));
      if (streamed_)
        whole.finish_reason = piece.finish_reason;
      else
        append(whole, std::move(piece));
    }
    if (!events.empty()) call.exchange().write(events);
    if (!streamed_ && !output.prompt_logprobs.empty()) prompt_members_ = prompt_.members(output.prompt_logprobs);
  }

  void end(Call& call, const TokenUsage& usage) override {
    if (streamed_) {
      call.exchange().write(stream_.end(with_reasoning(usage)));
      call.exchange().end();
      return;
    }
    if (prompt_members_.empty()) prompt_members_ = prompt_.members({});
    HttpResponse out = json_response(200, chat_completion(head_, whole_, reading_->top_logprobs.has_value(),
                                                          with_reasoning(usage), prompt_members_));
    std::ranges::move(headers_, std::back_inserter(out.headers));
    call.respond(std::move(out));
  }

  void fail(Call& call, const ApiError& error) override {
    if (!streamed_) return call.refuse(error);
    call.exchange().write(stream_.fail(error, call.request().path, call.id()));
    call.exchange().end();
  }

 private:
  std::string first_events(std::span<const esurge::TokenLogprobs> prompt_logprobs) const {
    std::string out;
    for (const ChatPiece& piece : whole_) out += stream_.begin(piece.index, prompt_.members(prompt_logprobs));
    return out;
  }
  TokenUsage with_reasoning(TokenUsage usage) const {
    for (const ChatReader& reader : readers_) usage.reasoning_tokens += reader.reasoning_tokens();
    return usage;
  }

  std::shared_ptr<const ChatReading> reading_;
  CompletionHead head_;
  std::vector<Header> headers_;
  bool streamed_, shows_ids_, begun_ = false;
  PromptTokens prompt_;
  std::string prompt_members_;
  CompletionStream stream_;
  std::vector<ChatReader> readers_;
  std::vector<ChatPiece> whole_;  // of a stream only the finish reasons
};

void answer_chat(const RouteContext& context, const Api& api, const std::shared_ptr<Call>& call) {
  ChatRequest request = read_fields<ChatRequest>(*call, call->body(), rules_of(context.config));
  const GenerationFields fields = request.generation;
  ConversationAnswer answer = prepare_conversation(context, api, *call, std::move(request));
  CompletionHead head{.id = new_completion_id("chatcmpl-"),
                      .created = seconds_since_1970(),
                      .model = answer.model->id,
                      .system_fingerprint = answer.model->fingerprint};
  auto writer = std::make_unique<ChatWriter>(answer.reading, fields, std::move(head),
                                             truncation_headers(answer.truncated_tokens));
  context.jobs.start(call, answer.model, std::move(answer.parts), std::move(writer));
}

}  // namespace

void add_chat_route(Api& api, const RouteContext& context) {
  api.serve("POST /v1/chat/completions",
            [&api, context](std::shared_ptr<Call> call) { answer_chat(context, api, call); });
}

}  // namespace easydel::server
