#include "easydel/elarge/generate_by_engine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

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
  if (!asked.negative_prompt.empty() && config.guidance_scale != 1) request.negative_prompt = asked.negative_prompt;
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

Generated generated(size_t prompt, const esurge::RequestOutput& output, const esurge::CompletionOutput& one) {
  Generated got;
  got.prompt = prompt;
  got.text = one.text;
  got.prompt_tokens = int64_t(output.prompt_token_ids.size());
  got.new_tokens = one.num_generated_tokens - (std::holds_alternative<text::TokenId>(one.stop_reason) ? 1 : 0);
  got.tokens.assign(one.token_ids.begin(), one.token_ids.begin() + std::ptrdiff_t(got.new_tokens));
  got.finish_reason = reason_of(output, one);
  got.score = one.score;
  got.prefill_seconds = output.first_token_time.value_or(0);
  got.decode_seconds = output.time_spent_generating;
  return got;
}

// Results that the engine's threads bring and the caller's fetches.
struct Finished {
  std::mutex mutex;
  std::condition_variable came;
  std::deque<std::pair<size_t, esurge::RequestOutput>> results;
};

// The requests in the engine, which are aborted if there is an error.
class Asked {
 public:
  Asked(esurge::Engine& engine, std::vector<esurge::Request> requests) : engine_(engine) {
    try {
      for (size_t i = 0; i < requests.size(); ++i) {
        requests[i].sampling.output_kind = esurge::OutputKind::final_only;
        ids_.push_back(engine.add(std::move(requests[i]), [finished = finished_, i](esurge::RequestOutput output) {
          const std::lock_guard lock(finished->mutex);
          finished->results.emplace_back(i, std::move(output));
          finished->came.notify_one();
        }));
      }
    } catch (...) {
      abort();
      throw;
    }
  }
  ~Asked() { abort(); }
  Asked(const Asked&) = delete;

  // The next that is finished. If `stop` is set all are aborted, and finished by that.
  std::pair<size_t, esurge::RequestOutput> next(const std::atomic<bool>* stop) {
    constexpr auto between_looks = std::chrono::milliseconds(100);
    std::unique_lock lock(finished_->mutex);
    while (!finished_->came.wait_for(lock, between_looks, [this] { return !finished_->results.empty(); })) {
      if (!stop || !stop->load()) continue;
      lock.unlock();
      abort();
      lock.lock();
    }
    auto result = std::move(finished_->results.front());
    finished_->results.pop_front();
    return result;
  }

 private:
  void abort() {
    for (const esurge::RequestId id : std::exchange(ids_, {})) engine_.abort(id);
  }

  esurge::Engine& engine_;
  std::shared_ptr<Finished> finished_ = std::make_shared<Finished>();
  std::vector<esurge::RequestId> ids_;
};

}  // namespace

std::vector<Generated> generate_by_engine(esurge::Engine& engine, const std::vector<generation::Request>& requests,
                                          const GenerateRequest& request) {
  std::vector<esurge::Request> all;
  for (const generation::Request& one : requests) {
    const std::string& adapter = request.adapter_of(all.size());
    all.push_back(engine_request(one));
    all.back().constraint = request.constraint;
    if (!adapter.empty()) all.back().sampling.adapter = adapter;
  }
  const auto begin = Clock::now();
  Asked asked(engine, std::move(all));
  std::vector<std::vector<Generated>> results(requests.size());
  int64_t tokens = 0;
  for (size_t left = requests.size(); left > 0; --left) {
    const auto [prompt, output] = asked.next(request.stop);
    if (!output.error.empty()) refuse(str("prompt ", prompt + 1), output.error);
    tokens += output.num_generated_tokens;
    for (const esurge::CompletionOutput& one : output.outputs) {
      const Generated& got = results[prompt].emplace_back(generated(prompt, output, one));
      const size_t index = prompt * size_t(requests[prompt].config.num_return_sequences) + results[prompt].size() - 1;
      if (request.on_text) request.on_text(index, got.text);
      if (request.on_result) request.on_result(got);
    }
  }
  std::vector<Generated> out;
  for (std::vector<Generated>& each : results) std::ranges::move(each, std::back_inserter(out));
  const double seconds = seconds_since(begin);
  char line[160];
  std::snprintf(line, sizeof line, "engine: %lld tokens, %.1f tokens/s, %.0f %% of the prompts' tokens were cached",
                static_cast<long long>(tokens), double(tokens) / std::max(seconds, 1e-9),
                100 * engine.metrics().cache_hit_rate());
  log::info(line);
  return out;
}

Value document_of(const std::vector<Generated>& all) {
  Value out = Value::list();
  for (const Generated& each : all) {
    Value one = Value::map(), tokens = Value::list();
    for (const int32_t token : each.tokens) tokens.items.push_back(Value::integer(token));
    one.set("prompt", Value::integer(int64_t(each.prompt)));
    one.set("text", Value::text(each.text));
    one.set("prompt_tokens", Value::integer(each.prompt_tokens));
    one.set("new_tokens", Value::integer(each.new_tokens));
    one.set("finish_reason", Value::text(each.finish_reason));
    if (each.score) one.set("score", Value::number(*each.score));
    one.set("prefill_seconds", Value::number(each.prefill_seconds));
    one.set("decode_seconds", Value::number(each.decode_seconds));
    one.set("tokens", std::move(tokens));
    out.items.push_back(std::move(one));
  }
  return out;
}

std::vector<Generated> generated_of(const Value& document) {
  std::vector<Generated> out;
  for (const Value& one : document.items) {
    Generated& each = out.emplace_back();
    const auto integer = [&](const char* key) { return one.find(key)->as_int().value_or(0); };
    const auto number = [&](const char* key) { return one.find(key)->as_double().value_or(0); };
    each.prompt = size_t(integer("prompt"));
    each.text = one.find("text")->scalar;
    each.prompt_tokens = integer("prompt_tokens"), each.new_tokens = integer("new_tokens");
    each.finish_reason = one.find("finish_reason")->scalar;
    if (one.find("score")) each.score = number("score");
    each.prefill_seconds = number("prefill_seconds"), each.decode_seconds = number("decode_seconds");
    for (const Value& token : one.find("tokens")->items) each.tokens.push_back(int32_t(token.as_int().value_or(0)));
  }
  return out;
}

}  // namespace easydel::elarge
