#include "easydel/server/single_answer.h"

#include <utility>

namespace easydel::server {

SingleAnswer::SingleAnswer(std::shared_ptr<const ChatReading> reading, const GenerationFields& fields,
                           std::vector<Header> headers)
    : reader_(reading, 0),
      prompt_(reading->model->tokenizer, reading->prompt, fields),
      streamed_(fields.stream),
      headers_(std::move(headers)) {}

std::string SingleAnswer::token_members() const {
  return prompt_.members(prompt_logprobs_) + (token_ids_ ? R"(,"token_ids":)" + id_list_text(*token_ids_) : "");
}

void SingleAnswer::begin(Call& call) {
  const std::string events = begin_events();
  if (!streamed_) return;
  call.begin_events(headers_);
  call.exchange().write(events);
}

void SingleAnswer::add(Call& call, size_t, const esurge::RequestOutput& output, const TokenUsage&) {
  std::string events;
  if (!output.prompt_logprobs.empty()) prompt_logprobs_ = output.prompt_logprobs;
  for (const esurge::CompletionOutput& one : output.outputs) {
    if (prompt_.shows_ids()) append_ids(token_ids_, one.token_ids);
    ChatPiece piece = reader_.read(one);
    if (const auto* const stop = std::get_if<std::string>(&one.stop_reason); stop && one.finish_reason)
      piece.stop = *stop;
    events += piece_events(piece);
  }
  if (streamed_ && !events.empty()) call.exchange().write(events);
}

void SingleAnswer::respond(Call& call) {
  HttpResponse out = json_response(200, object());
  std::ranges::move(headers_, std::back_inserter(out.headers));
  call.respond(std::move(out));
}

void SingleAnswer::end(Call& call, const TokenUsage& usage) {
  TokenUsage own = usage;
  own.reasoning_tokens = reader_.reasoning_tokens();
  const std::string events = end_events(own);
  if (!streamed_) return respond(call);
  call.exchange().write(events);
  call.exchange().end();
}

void SingleAnswer::fail(Call& call, const ApiError& error) {
  const std::string events = fail_events(call, error);
  if (!streamed_) return fails_with_object() ? respond(call) : call.refuse(error);
  call.exchange().write(events);
  call.exchange().end();
}

}  // namespace easydel::server
