#include "easydel/server/encode_queue.h"

#include <iterator>
#include <span>
#include <utility>

namespace easydel::server {
namespace {

constexpr size_t max_pass_tokens = 4096;  // of several texts; a longer text is a pass of its own

// How many of the first texts go into one pass.
size_t texts_of_pass(std::span<const EncodedText> texts) {
  size_t count = 1, tokens = texts[0].ids.size();
  while (count < texts.size() && tokens + texts[count].ids.size() <= max_pass_tokens)
    tokens += texts[count++].ids.size();
  return count;
}

}  // namespace

std::vector<Vector> EncodeQueue::encode(const EncodeRequest& request) const {
  std::vector<Vector> out;
  std::span<const EncodedText> rest = request.texts;
  while (!rest.empty()) {
    if (request.call->exchange().is_gone()) return {};
    if (ending_) throw Refusal({.status = 503, .message = "The server is shutting down.", .code = "draining"});
    if (options_.timeout_seconds > 0 && request.call->seconds() > options_.timeout_seconds)
      throw Refusal({.status = 504, .message = "The request took too long.", .code = "deadline_exceeded"});
    const size_t count = texts_of_pass(rest);
    std::ranges::move(request.model->encoder->encode(rest.first(count)), std::back_inserter(out));
    rest = rest.subspan(count);
  }
  return out;
}

void EncodeQueue::add(EncodeRequest request) {
  const int64_t most =
      options_.max_requests > 0 ? options_.max_requests : 4 * int64_t(request.model->config.max_num_seqs);
  if (requests_ >= most)
    throw Refusal(
        {.status = 503, .message = options_.overload_message, .code = "overloaded", .retry_after_seconds = 1});
  ++requests_;
  const auto kept = std::make_shared<const EncodeRequest>(std::move(request));
  thread_.submit([this, kept] {
    Call& call = *kept->call;
    answer_errors(call, [&] {
      std::vector<Vector> rows = encode(*kept);
      if (rows.empty())
        call.record.finish_reason = "abort";
      else
        kept->answer(call, std::move(rows));
    });
    --requests_;
  });
}

}  // namespace easydel::server
