// POST /v1/chat/completions.
#include <algorithm>
#include <memory>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/server/chat_reader.h"
#include "easydel/server/completion_json.h"
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
        stream_(CompletionStream::Kind::chat, head_, reading_->top_logprobs.has_value(),
                fields.stream_options && fields.stream_options->include_usage,
                fields.stream_options && fields.stream_options->continuous_usage_stats) {
    for (int64_t i = 0; i < fields.n.value_or(1); ++i) {
      readers_.emplace_back(reading_, i);
      whole_.push_back({.index = i});
    }
  }

  void begin(Call& call) override {
    if (!streamed_) return;
    call.begin_events(headers_);
    std::string events;
    for (const ChatPiece& piece : whole_) events += stream_.begin(piece.index);
    call.exchange().write(events);
  }

  void add(Call& call, size_t, const esurge::RequestOutput& output, const TokenUsage& usage) override {
    std::string events;
    for (const esurge::CompletionOutput& one : output.outputs) {
      ChatPiece& whole = whole_[size_t(one.index)];
      if (!whole.finish_reason.empty()) continue;
      ChatPiece piece = readers_[size_t(one.index)].read(one);
      if (streamed_) events += stream_.piece(piece, with_reasoning(usage));
      if (streamed_)
        whole.finish_reason = piece.finish_reason;
      else
        append(whole, std::move(piece));
    }
    if (!events.empty()) call.exchange().write(events);
  }

  void end(Call& call, const TokenUsage& usage) override {
    if (streamed_) {
      call.exchange().write(stream_.end(with_reasoning(usage)));
      call.exchange().end();
      return;
    }
    HttpResponse out =
        json_response(200, chat_completion(head_, whole_, reading_->top_logprobs.has_value(), with_reasoning(usage)));
    std::ranges::move(headers_, std::back_inserter(out.headers));
    call.respond(std::move(out));
  }

  void fail(Call& call, const ApiError& error) override {
    if (!streamed_) return call.refuse(error);
    call.exchange().write(stream_.fail(error, call.request().path, call.id()));
    call.exchange().end();
  }

 private:
  TokenUsage with_reasoning(TokenUsage usage) const {
    for (const ChatReader& reader : readers_) usage.reasoning_tokens += reader.reasoning_tokens();
    return usage;
  }

  std::shared_ptr<const ChatReading> reading_;
  CompletionHead head_;
  std::vector<Header> headers_;
  bool streamed_;
  CompletionStream stream_;
  std::vector<ChatReader> readers_;
  std::vector<ChatPiece> whole_;  // of a stream only the finish reasons
};

// The old form, in which functions are not called tools.
void take_functions(ChatRequest& request) {
  const Value& functions = request.chat.functions;
  if (!functions.is_list() || functions.items.empty() || !request.conversation.tools.is_null()) return;
  request.conversation.tools = Value::list();
  for (const Value& function : functions.items) {
    Value tool = Value::map();
    tool.set("type", Value::text("function"));
    tool.set("function", function);
    request.conversation.tools.items.push_back(std::move(tool));
  }
}

bool has_tools(const ChatRequest& request) {
  return request.conversation.tools.is_list() && !request.conversation.tools.items.empty();
}

// Whether calls in the answer are returned as calls.
bool parses_calls(const ChatRequest& request) {
  const Value& choice = request.chat.tool_choice.is_null() ? request.chat.function_call : request.chat.tool_choice;
  return has_tools(request) && !(choice.is_text() && choice.scalar == "none");
}

void constrain_by_format(const ChatRequest& request, esurge::SamplingParams& sampling) {
  const Value* const type = request.chat.response_format.find("type");
  if (!type || type->scalar == "text") return;
  if (sampling.guided_decoding)
    refuse("response_format", "and other constraints exclude each other", "give one constraint");
  sampling.guided_decoding.emplace();
  if (type->scalar == "json_object")
    sampling.guided_decoding->json_object = true;
  else
    sampling.guided_decoding->json = *request.chat.response_format.find("json_schema")->find("schema");
}

void answer_chat(const RouteContext& context, const Api& api, const std::shared_ptr<Call>& call) {
  std::vector<std::string> passed_over;
  ChatRequest request =
      read_request<ChatRequest>(read_value(call->request().body), {context.config.strict_requests}, passed_over);
  take_functions(request);
  const GenerationFields& fields = request.generation;
  const std::shared_ptr<const ServedModel> model = model_for(context, api, *call, fields.model);
  if (has_tools(request) && !context.config.enable_function_calling)
    refuse("tools", "this server does not take tools", "leave them out, or set enable_function_calling: true");

  std::optional<int64_t> max_tokens = request.max_tokens();
  if (max_tokens == 0) refuse("max_tokens", "0 leaves no answer", "give at least 1");
  if (!max_tokens) max_tokens = default_max_tokens(*model);
  esurge::SamplingParams sampling = sampling_of(fields, max_tokens, *model);
  constrain_by_format(request, sampling);
  if (request.chat.logprobs.value_or(false)) sampling.logprobs = request.chat.top_logprobs.value_or(0);
  separate_prefixes(context, *call, sampling);

  ConversationPrompt prompt = render_conversation(context.config, *model, request.conversation);
  FittedRequest fitted = fit_request(std::move(prompt.ids), sampling, *model);
  prompt.ids = fitted.prompt;
  check_permissions(*call, {fields.stream, has_tools(request), fitted.max_tokens * sampling.choices_drawn()});
  auto reading = std::make_shared<ChatReading>(
      chat_reading(model, request.conversation, std::move(prompt), parses_calls(request)));
  reading->top_logprobs = sampling.logprobs;
  reading->skip_special_tokens = sampling.skip_special_tokens;
  if (request.chat.echo) {
    const Value* const content = request.conversation.messages.items.back().find("content");
    if (content && content->is_text()) reading->prefix = content->scalar;
  }

  AnswerPart part;
  part.prompt_tokens = int64_t(fitted.prompt.size());
  part.truncated_tokens = fitted.truncated_tokens;
  part.request.prompt = std::move(fitted.prompt);
  part.request.request_id = call->id();
  sampling.skip_special_tokens = reading->engine_skips_special_tokens();
  sampling.return_token_ids = reading->needs_tokens();
  sampling.output_kind = fields.stream ? esurge::OutputKind::delta : esurge::OutputKind::final_only;
  part.request.sampling = std::move(sampling);
  CompletionHead head{.id = new_completion_id("chatcmpl-"),
                      .created = seconds_since_1970(),
                      .model = model->id,
                      .system_fingerprint = model->fingerprint};
  const int64_t truncated = part.truncated_tokens;
  std::vector<AnswerPart> parts;
  parts.push_back(std::move(part));
  context.jobs.start(
      call, model, std::move(parts),
      std::make_unique<ChatWriter>(std::move(reading), fields, std::move(head), truncation_headers(truncated)));
}

}  // namespace

void add_chat_route(Api& api, const RouteContext& context) {
  api.serve("POST /v1/chat/completions",
            [&api, context](std::shared_ptr<Call> call) { answer_chat(context, api, call); });
}

}  // namespace easydel::server
