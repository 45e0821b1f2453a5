#include "easydel/server/single_answer.h"

#include <utility>

namespace easydel::server {

SingleAnswer::SingleAnswer(std::shared_ptr<const ChatReading> reading, bool streamed, std::vector<Header> headers)
    : reader_(std::move(reading), 0), streamed_(streamed), headers_(std::move(headers)) {}

void SingleAnswer::begin(Call& call) {
  const std::string events = begin_events();
  if (!streamed_) return;
  call.begin_events(headers_);
  call.exchange().write(events);
}

void SingleAnswer::add(Call& call, size_t, const esurge::RequestOutput& output, const TokenUsage&) {
  std::string events;
  for (const esurge::CompletionOutput& one : output.outputs) {
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
