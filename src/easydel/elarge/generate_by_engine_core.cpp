#include "easydel/elarge/generate_by_engine.h"

#include <algorithm>
#include <cstdio>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"

namespace easydel::elarge {
namespace {

esurge::Request engine_request(const generation::Request& asked) {
  const generation::GenerationConfig& config = asked.config;
  esurge::Request request;
  request.prompt = asked.prompt;
  request.generation = config;
  esurge::SamplingParams& sampling = request.sampling;
  sampling.n = config.num_return_sequences;
  const auto prompt = int64_t(asked.prompt.size());
  sampling.max_tokens = config.max_new_tokens ? *config.max_new_tokens
                        : config.max_length   ? std::max<int64_t>(*config.max_length - prompt, 1)
                                              : generation::default_new_tokens;
  sampling.skip_special_tokens = true;
  sampling.return_token_ids = true;
  sampling.timeout_seconds = config.max_time;
  return request;
}

std::string reason_of(const esurge::RequestOutput& output, const esurge::CompletionOutput& one) {
  using generation::StopReason;
  StopReason reason = StopReason::cancelled;
  if (one.finish_reason == esurge::FinishReason::length) reason = StopReason::length;
  if (one.finish_reason == esurge::FinishReason::stop)
    reason = std::holds_alternative<std::string>(one.stop_reason) ? StopReason::stop_string : StopReason::end;
  if (output.timed_out) reason = StopReason::max_time;
  return std::string(generation::name_of(reason));
}

}  // namespace

std::vector<Generated> generate_by_engine(esurge::Engine& engine, const std::vector<generation::Request>& requests,
                                          const GenerateRequest& request) {
  std::vector<esurge::Request> asked;
  for (const generation::Request& one : requests) asked.push_back(engine_request(one));
  const auto begin = Clock::now();
  const std::vector<esurge::RequestOutput> outputs = engine.generate(std::move(asked));
  const double seconds = seconds_since(begin);
  std::vector<Generated> out;
  int64_t tokens = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const esurge::RequestOutput& output = outputs[i];
    if (!output.error.empty()) refuse(str("prompt ", i + 1), output.error);
    tokens += output.num_generated_tokens;
    for (const esurge::CompletionOutput& one : output.outputs) {
      Generated& got = out.emplace_back();
      got.prompt = i;
      got.text = one.text;
      got.prompt_tokens = int64_t(output.prompt_token_ids.size());
      got.new_tokens = one.num_generated_tokens - (std::holds_alternative<text::TokenId>(one.stop_reason) ? 1 : 0);
      got.tokens.assign(one.token_ids.begin(), one.token_ids.begin() + std::ptrdiff_t(got.new_tokens));
      got.finish_reason = reason_of(output, one);
      got.prefill_seconds = output.first_token_time.value_or(0);
      got.decode_seconds = output.time_spent_generating;
      if (request.on_text) request.on_text(out.size() - 1, got.text);
      if (request.on_result) request.on_result(got);
    }
  }
  char line[160];
  std::snprintf(line, sizeof line, "engine: %lld tokens, %.1f tokens/s, %.0f %% of the prompts' tokens were cached",
                static_cast<long long>(tokens), double(tokens) / std::max(seconds, 1e-9),
                100 * engine.metrics().cache_hit_rate());
  log::info(line);
  return out;
}

}  // namespace easydel::elarge
