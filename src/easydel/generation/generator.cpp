#include "easydel/generation/generator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/generation/sampler.h"
#include "easydel/generation/stopping.h"
#include "easydel/nn/cache.h"

namespace easydel::generation {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// One request on its way. The last token of `tokens` is the one that the model has not seen yet.
struct Running {
  Running(size_t index, const Request& request, std::shared_ptr<const text::Tokenizer> tokenizer, int64_t limit)
      : index(index),
        tokens(request.prompt),
        prompt(request.prompt.size()),
        limit(static_cast<size_t>(limit)),
        ends(request.sampling.eos_token_id.begin(), request.sampling.eos_token_id.end()),
        sampler(request.sampling),
        stops({request.sampling.stop.begin(), request.sampling.stop.end()}) {
    if (tokenizer) decoder.emplace(std::move(tokenizer));
  }

  size_t index;
  std::vector<TokenId> tokens;
  size_t prompt;
  size_t limit;  // most new tokens
  std::vector<int64_t> ends;
  Sampler sampler;
  StopStrings stops;
  std::optional<text::DecodeStream> decoder;
  int64_t slot = -1;
  size_t seen = 0;  // tokens in the cache
  size_t known = 0;  // tokens it had when those were first computed
  Result result;
  bool done = false;

  // Its keys are of other frequencies than its length now asks for.
  bool outgrown(int64_t length) const {
    return seen > 0 && length > 0 && known <= static_cast<size_t>(length) && tokens.size() > static_cast<size_t>(length);
  }
  size_t unseen() const { return tokens.size() - seen; }
  bool decoding() const { return seen + 1 == tokens.size() && tokens.size() > prompt; }

  void accept(TokenId token, const OnText& on_text) {
    if (std::ranges::find(ends, token) != ends.end()) return finish(StopReason::end, token, on_text);
    tokens.push_back(token);
    result.tokens.push_back(token);
    const std::string piece = decoder ? stops.push(decoder->push(token)) : "";
    result.text += piece;
    const bool go_on = !on_text || on_text(index, token, piece);
    if (stops.stopped()) return end(StopReason::stop_string);
    if (!go_on) return end(StopReason::cancelled);
    if (result.tokens.size() >= limit) finish(StopReason::length, token, on_text);
  }

 private:
  // The rest of the text comes out only when nothing more can follow it.
  void finish(StopReason reason, TokenId token, const OnText& on_text) {
    if (decoder) {
      std::string rest = stops.push(decoder->finish());
      rest += stops.finish();
      result.text += rest;
      if (on_text && !rest.empty()) on_text(index, token, rest);
    }
    end(reason);
  }
  void end(StopReason reason) { result.reason = reason, done = true; }
};

void check_prompt(const Request& request, size_t index, const models::Model& model, bool have_tokenizer) {
  const std::string where = str("prompt ", index + 1);
  if (request.prompt.empty()) refuse(where, "has no tokens", "give at least one token, such as the tokenizer's BOS");
  for (const TokenId id : request.prompt)
    if (id < 0 || id >= model.vocabulary())
      refuse(where, str("holds the token id ", id, "; the model's vocabulary has ", model.vocabulary()),
             "use the model's own tokenizer");
  const auto longest = model.max_positions();
  if (longest > 0 && static_cast<int64_t>(request.prompt.size()) >= longest)
    refuse(where, str("has ", request.prompt.size(), " tokens; the model has ", longest, " positions, one of them for an answer"),
           "shorten the prompt");
  if (!request.sampling.stop.empty() && !have_tokenizer)
    refuse(where, "stop strings need a tokenizer", "use a folder with tokenizer.json, or stop by eos_token_id");
}

// As many new tokens as were asked for and the model has positions.
int64_t limit_of(const Request& request, const models::Model& model) {
  const auto longest = model.max_positions();
  const auto wanted = request.sampling.max_new_tokens;
  return longest > 0 ? std::min(wanted, longest - static_cast<int64_t>(request.prompt.size())) : wanted;
}

}  // namespace

std::string_view name_of(StopReason reason) {
  static constexpr std::string_view kNames[] = {"end", "stop_string", "length", "cancelled"};
  return kNames[static_cast<size_t>(reason)];
}

Generator::Generator(const models::Model& model, std::shared_ptr<const text::Tokenizer> tokenizer, GeneratorOptions options)
    : model_(model), tokenizer_(std::move(tokenizer)), options_(options) {
  check(options_.batch > 0 && options_.prefill_tokens > 0, "generator: batch and prefill_tokens are at least 1");
}

std::vector<Result> Generator::run(const std::vector<Request>& requests, const OnText& on_text) {
  const c10::AutoGradMode no_grad(false);
  std::vector<Result> results(requests.size());
  std::deque<Running> waiting;
  int64_t longest = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    check_prompt(requests[i], i, model_, tokenizer_ != nullptr);
    const int64_t limit = limit_of(requests[i], model_);
    longest = std::max(longest, static_cast<int64_t>(requests[i].prompt.size()) + limit);
    waiting.emplace_back(i, requests[i], tokenizer_, limit);
  }
  if (requests.empty()) return results;

  const int64_t slots = std::min<int64_t>(options_.batch, static_cast<int64_t>(requests.size()));
  const std::unique_ptr<nn::Cache> cache = model_.make_cache(slots, longest);
  std::vector<int64_t> free;
  for (int64_t slot = slots; slot-- > 0;) free.push_back(slot);
  std::vector<Running> running;

  // One pass over `count[i]` unseen tokens of each; whoever has seen all of its tokens gets the next one.
  const auto step = [&](std::span<Running*> batch, const std::vector<int64_t>& count) {
    std::vector<int64_t> of, ready, lengths;
    std::vector<Running*> next;
    int64_t total = 0;
    for (const int64_t n : count) total += n;
    Tensor tokens = at::empty({total}, at::kLong);
    int64_t* to = tokens.data_ptr<int64_t>();
    for (size_t i = 0, row = 0; i < batch.size(); ++i) {
      Running& r = *batch[i];
      if (r.seen == 0) r.known = r.tokens.size();
      lengths.push_back(static_cast<int64_t>(r.tokens.size()));
      for (int64_t j = 0; j < count[i]; ++j) *to++ = r.tokens[r.seen + static_cast<size_t>(j)];
      r.seen += static_cast<size_t>(count[i]), row += static_cast<size_t>(count[i]);
      of.push_back(r.slot);
      if (r.unseen() == 0) next.push_back(&r), ready.push_back(static_cast<int64_t>(row) - 1);
    }
    nn::Pass pass = nn::Pass::next(*cache, of, count);
    pass.stream().lengths = std::move(lengths);
    const Tensor hidden = model_.forward({.tokens = tokens.to(model_.device())}, pass).hidden;
    if (next.empty()) return;
    Tensor rows = at::empty({static_cast<int64_t>(ready.size())}, at::kLong);
    std::ranges::copy(ready, rows.data_ptr<int64_t>());
    const Tensor logits = model_.head().logits(hidden.index_select(0, rows.to(hidden.device()))).cpu().contiguous();
    const auto width = static_cast<size_t>(logits.size(1));
    for (size_t i = 0; i < next.size(); ++i) {
      Running& r = *next[i];
      const std::span<const float> scores(logits.data_ptr<float>() + i * width, width);
      r.accept(r.sampler.choose({r.tokens, r.prompt}, scores, r.index), on_text);
    }
  };

  while (!waiting.empty() || !running.empty()) {
    while (!free.empty() && !waiting.empty()) {
      running.push_back(std::move(waiting.front()));
      waiting.pop_front();
      running.back().slot = free.back();
      running.back().result.prompt_tokens = static_cast<int64_t>(running.back().prompt);
      free.pop_back();
    }
    for (Running& r : running)
      if (r.outgrown(model_.restart_length())) {
        cache->truncate(r.slot, 0);
        r.seen = 0;
      }
    // Prompts first, in pieces of at most prefill_tokens a pass; then everybody decodes together.
    const auto begin = Clock::now();
    std::vector<Running*> batch;
    std::vector<int64_t> count;
    int64_t budget = options_.prefill_tokens;
    for (Running& r : running)
      if (!r.decoding() && budget > 0) {
        batch.push_back(&r), count.push_back(std::min<int64_t>(budget, static_cast<int64_t>(r.unseen())));
        budget -= count.back();
      }
    const bool prefill = !batch.empty();
    if (!prefill)
      for (Running& r : running) batch.push_back(&r), count.push_back(1);
    step(batch, count);
    const double took = seconds_since(begin);
    for (Running* r : batch) (prefill ? r->result.prefill_seconds : r->result.decode_seconds) += took;

    std::erase_if(running, [&](Running& r) {
      if (!r.done) return false;
      cache->truncate(r.slot, 0);
      free.push_back(r.slot);
      results[r.index] = std::move(r.result);
      return true;
    });
  }
  return results;
}

}  // namespace easydel::generation
