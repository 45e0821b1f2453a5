#include "easydel/generation/generator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <deque>
#include <span>
#include <utility>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/generation/search.h"
#include "easydel/models/not_finite.h"
#include "easydel/nn/cache.h"
#include "easydel/tensor/kernels.h"

namespace easydel::generation {
namespace {

int64_t tokens_of(const std::vector<TokenId>& tokens) { return int64_t(tokens.size()); }

// A request with the settings that its config leaves open, and the limits of its sequences.
struct Prepared {
  Request request;
  int64_t max_length;  // maximum number of tokens, prompt included
};

void check_ids(const auto& ids, const std::string& where, const char* what, const models::Model& model) {
  for (const int64_t id : ids)
    if (id < 0 || id >= model.vocabulary())
      refuse(where, str(what, " the token id ", id, "; the model's vocabulary has ", model.vocabulary()),
             "use the model's own tokenizer");
}

Prepared prepare(Request request, size_t index, const models::Model& model, bool have_tokenizer) {
  const std::string where = str("prompt ", index + 1);
  const GenerationConfig& config = request.config;
  check_together(config);
  if (request.prompt.empty() && config.bos_token_id) request.prompt = {static_cast<TokenId>(*config.bos_token_id)};
  if (request.prompt.empty()) refuse(where, "has no tokens", "give at least one token, such as the tokenizer's BOS");
  check_ids(request.prompt, where, "holds", model);
  check_ids(request.negative_prompt, "negative prompt", "holds", model);
  for (const auto& word : config.bad_words_ids) check_ids(word, "generation.bad_words_ids", "holds", model);
  for (const SequenceBias& entry : config.sequence_bias)
    check_ids(entry.tokens, "generation.sequence_bias", "holds", model);
  // Those of the model's files are its own affair; a mistyped one would never end a text.
  if (config.given.contains("eos_token_id")) check_ids(config.eos_token_id, "generation.eos_token_id", "has", model);
  check_ids(config.forced_eos_token_id, "generation.forced_eos_token_id", "is", model);
  if (config.forced_bos_token_id)
    check_ids(std::array{*config.forced_bos_token_id}, "generation.forced_bos_token_id", "is", model);
  const int64_t prompt = tokens_of(request.prompt), positions = model.max_positions();
  if (positions > 0 && prompt >= positions)
    refuse(where, str("has ", prompt, " tokens; the model has ", positions, " positions, one of them for an answer"),
           "shorten the prompt");
  if (!config.stop_strings.empty() && !have_tokenizer)
    refuse(where, "stop strings need a tokenizer", "use a folder with tokenizer.json, or stop by eos_token_id");
  if (config.max_length && !config.max_new_tokens && prompt >= *config.max_length)
    refuse(where, str("has ", prompt, " tokens, and max_length is ", *config.max_length),
           "raise max_length, or give max_new_tokens");
  int64_t longest =
      config.max_new_tokens ? prompt + *config.max_new_tokens : config.max_length.value_or(prompt + default_new_tokens);
  if (positions > 0) longest = std::min(longest, positions);
  return {std::move(request), longest};
}

// A model that reads the tokens of a run, and what it keeps of them.
struct Reader {
  Reader(const models::Model& reading, bool with_adapters, int64_t slots, int64_t length)
      : model(reading), adapters(with_adapters), cache(reading.make_cache(slots, length)) {}

  const models::Model& model;
  bool adapters;
  std::unique_ptr<nn::Cache> cache;
};

// The model and the cache of one run, and those of the model that is blended in.
class Passes {
 public:
  Passes(const models::Model& model, const GeneratorOptions& options, int64_t slots, int64_t length)
      : model_(model, options.adapters, slots, length),
        weight_(options.blend.weight),
        with_others_(bool(options.exchange)) {
    if (options.blend.model) other_.emplace(*options.blend.model, options.blend.adapters, slots, length);
    for (int64_t slot = slots; slot-- > 0;) free_.push_back(slot);
  }

  nn::Cache& cache() { return *model_.cache; }
  bool take_slots(std::span<Sequence> sequences) {
    if (free_.size() < sequences.size()) return false;
    for (Sequence& sequence : sequences) sequence.slot = free_.back(), free_.pop_back();
    return true;
  }
  void give_back(std::span<Sequence> sequences) {
    for (Sequence& sequence : sequences) forget(sequence), free_.push_back(sequence.slot);
  }
  void forget(Sequence& sequence) {
    model_.cache->truncate(sequence.slot, 0);
    if (other_) other_->cache->truncate(sequence.slot, 0);
    sequence.seen = 0;
  }
  // True if its cached keys were rotated by frequencies of a shorter length than it has now.
  bool outgrown(const Sequence& sequence) const {
    return outgrown(sequence, model_.model) || (other_ && outgrown(sequence, other_->model));
  }

  // One pass over `count[i]` unseen tokens of each sequence. Sequences that have then seen all of their tokens get
  // scores.
  void run(const std::vector<Sequence*>& sequences, const std::vector<int64_t>& count) {
    Step step;
    std::vector<Sequence*> complete;
    int64_t total = 0;
    for (const int64_t n : count) total += n;
    step.tokens = at::empty({total}, at::kLong);
    int64_t* to = step.tokens.data_ptr<int64_t>();
    for (size_t i = 0; i < sequences.size(); ++i) {
      Sequence& sequence = *sequences[i];
      if (sequence.seen == 0) sequence.known = sequence.tokens.size();
      step.lengths.push_back(tokens_of(sequence.tokens));
      for (int64_t j = 0; j < count[i]; ++j) *to++ = sequence.tokens[sequence.seen++];
      step.slots.push_back(sequence.slot);
      step.prompts.push_back(int64_t(sequence.prompt));
      step.requested.push_back(sequence.unseen() == 0);
      step.adapters.push_back(sequence.adapter);
      if (sequence.unseen() == 0) complete.push_back(&sequence);
    }
    // The output layer gathers weights, too, and another rank may need it.
    if (complete.empty() && with_others_) step.requested.back() = 1;
    const bool wants_logits = !complete.empty() || with_others_;
    Tensor logits = read(model_, step, count, wants_logits);
    if (other_) {
      step.adapters.clear();
      const Tensor others = read(*other_, step, count, wants_logits);
      if (!complete.empty()) logits = logits * (1 - weight_) + others * weight_;
    }
    for (size_t i = 0; i < complete.size(); ++i) complete[i]->scores = logits.select(0, int64_t(i));
  }

 private:
  struct Step {
    Tensor tokens;
    std::vector<int64_t> slots, prompts, requested, lengths;
    std::vector<std::shared_ptr<const nn::LoadedAdapter>> adapters;  // of the first model
  };

  // The logits of the sequences that are complete, fp32 on the CPU; undefined: none are wanted.
  static Tensor read(Reader& reader, const Step& step, const std::vector<int64_t>& count, bool wants_logits) {
    const auto memory = reader.cache->next(step.slots, count);
    nn::Pass pass = nn::Pass::next(*memory, step.prompts);
    pass.stream().lengths = step.lengths;
    pass.stream().requested = step.requested;
    pass.stream().adapters = reader.adapters;
    if (std::ranges::any_of(step.adapters, [](const auto& adapter) { return adapter != nullptr; }))
      pass.stream().sequence_adapters = step.adapters;
    Tensor logits;
    const auto forward = [&] {
      const Tensor hidden = reader.model.forward({.tokens = step.tokens.to(reader.model.device())}, pass).hidden;
      if (wants_logits) logits = reader.model.head().logits(hidden, pass).cpu().contiguous();
    };
    // with few tokens a pass is many short steps, and no torch operator that needs the thread pool
    constexpr int64_t few = 32;
    step.tokens.numel() <= few ? tensor::executor().hold(forward) : forward();
    return logits;
  }
  static bool outgrown(const Sequence& sequence, const models::Model& model) {
    const auto length = size_t(model.restart_length());
    return sequence.seen > 0 && length > 0 && sequence.known <= length && sequence.tokens.size() > length;
  }

  Reader model_;
  std::optional<Reader> other_;
  double weight_;
  bool with_others_;
  std::vector<int64_t> free_;
};

}  // namespace

std::string_view name_of(StopReason reason) {
  static constexpr std::string_view names[] = {"end", "stop_string", "length", "max_time", "cancelled"};
  return names[size_t(reason)];
}

Generator::Generator(const models::Model& model, std::shared_ptr<const text::Tokenizer> tokenizer,
                     GeneratorOptions options)
    : model_(model), tokenizer_(std::move(tokenizer)), options_(options) {
  check(options_.batch > 0 && options_.prefill_tokens > 0, "generator: batch and prefill_tokens are at least 1");
  check(!options_.blend.model || options_.blend.model->vocabulary() == model_.vocabulary(),
        "a model of another vocabulary is blended in");
}

std::vector<Result> Generator::run(const std::vector<Request>& requests, const OnText& on_text,
                                   const OnResult& on_result) {
  const c10::InferenceMode no_grad;
  if (!options_.exchange) return run_own(requests, on_text, on_result);
  try {
    std::vector<Result> out = run_own(requests, on_text, on_result);
    while (exchange(RankState::done) == RankState::works) idle_pass();
    return out;
  } catch (...) {
    if (!others_ended_) options_.exchange(RankState::ended);
    throw;
  }
}

RankState Generator::exchange(RankState own) {
  const RankState all = options_.exchange(own);
  others_ended_ = all == RankState::ended;
  if (others_ended_) refuse("generation", "another rank could not go on", "its own message says why");
  return all;
}

void Generator::idle_pass() const {
  const auto idle = [](const models::Model& model, bool adapters) {
    nn::Pass pass = nn::Pass::over({0, 1});
    pass.stream().requested = {1};
    pass.stream().adapters = adapters;
    const Tensor token = at::zeros({1}, at::kLong).to(model.device());
    model.head().logits(model.forward({.tokens = token}, pass).hidden, pass);
  };
  idle(model_, options_.adapters);
  if (options_.blend.model) idle(*options_.blend.model, options_.blend.adapters);
}

std::vector<Result> Generator::run_own(const std::vector<Request>& requests, const OnText& on_text,
                                       const OnResult& on_result) {
  if (requests.empty()) return {};
  const Surroundings around{tokenizer_, model_.vocabulary(), on_text, Clock::now(),
                            [this] { return models::first_not_finite(model_); }};
  std::vector<Prepared> prepared;
  for (size_t i = 0; i < requests.size(); ++i)
    prepared.push_back(prepare(requests[i], i, model_, tokenizer_ != nullptr));

  std::deque<std::unique_ptr<Search>> waiting;
  size_t results = 0, widest = 0, all = 0;
  int64_t longest = 0, prefill = options_.prefill_tokens;
  for (const auto& [request, max_length] : prepared) {
    const auto wanted = size_t(request.config.num_return_sequences);
    const bool beams = request.config.num_beams > 1;
    check(!options_.blend.model || (wanted == 1 && !beams), "two models together make one result of a request");
    for (size_t i = 0; i < (beams ? 1 : wanted); ++i) {
      waiting.push_back(beams ? make_beam_search(request, results, max_length, around)
                              : make_single_search(request, results + i, i, max_length, around));
      widest = std::max(widest, waiting.back()->sequences().size());
      all += waiting.back()->sequences().size();
    }
    results += wanted;
    // A negative prompt may be longer than the prompt.
    longest = std::max(
        longest, max_length + std::max<int64_t>(0, tokens_of(request.negative_prompt) - tokens_of(request.prompt)));
    if (request.config.prefill_chunk_size) prefill = std::min(prefill, *request.config.prefill_chunk_size);
  }

  Passes passes(model_, options_, int64_t(std::min(all, std::max(size_t(options_.batch), widest))), longest);
  std::vector<std::unique_ptr<Search>> running;
  std::vector<Result> out(results);
  const auto collect = [&](Search& search) {
    size_t at = search.first();
    for (Result& result : search.take_results()) {
      out[at] = std::move(result);
      if (on_result) on_result(at, out[at]);
      ++at;
    }
  };
  while (!waiting.empty() || !running.empty()) {
    if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
      std::ranges::move(waiting, std::back_inserter(running));
      for (const auto& search : running) search->cancel(), collect(*search);
      return out;
    }
    while (!waiting.empty() && passes.take_slots(waiting.front()->sequences())) {
      running.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
    // First the prompts, at most prefill_tokens per pass; then all requests decode together.
    const auto begin = Clock::now();
    std::vector<Sequence*> prompts, decoding;
    std::vector<int64_t> count;
    std::vector<Search*> prefilled, decoded;
    int64_t budget = prefill;
    for (const auto& search : running) {
      // Its prompt is being computed for another result of the same request.
      const auto shares = [&](const Search* other) { return other != search.get() && other->shares_prompt(*search); };
      if (search->untouched() && std::ranges::any_of(prefilled, shares)) continue;
      for (Sequence& sequence : search->sequences()) {
        if (!sequence.waiting()) continue;
        if (sequence.unseen() == 1 && sequence.seen > 0 && (passes.outgrown(sequence) || !search->keeps_cache()))
          passes.forget(sequence);
        if (sequence.decoding()) {
          decoding.push_back(&sequence), decoded.push_back(search.get());
        } else if (budget > 0) {
          prompts.push_back(&sequence), prefilled.push_back(search.get());
          count.push_back(std::min(budget, int64_t(sequence.unseen())));
          budget -= count.back();
        }
      }
    }
    const bool prefilling = !prompts.empty();
    if (!prefilling) count.assign(decoding.size(), 1);
    if (options_.exchange) exchange(RankState::works);
    passes.run(prefilling ? prompts : decoding, count);
    std::vector<Search*>& part = prefilling ? prefilled : decoded;
    part.erase(std::unique(part.begin(), part.end()), part.end());
    if (prefilling)
      for (size_t i = 0, computed = part.size(); i < computed; ++i)
        for (const auto& search : running)
          if (search->adopt_prompt(*part[i], passes.cache())) part.push_back(search.get());
    tensor::executor().run(std::ssize(part), [&](int64_t i) {
      if (part[size_t(i)]->ready()) part[size_t(i)]->draw_ahead();
    });
    for (Search* search : part) {
      if (search->ready()) search->advance(passes.cache());
      (prefilling ? search->prefill_seconds : search->decode_seconds) += seconds_since(begin);
    }
    std::erase_if(running, [&](const std::unique_ptr<Search>& search) {
      if (!search->done()) return false;
      passes.give_back(search->sequences());
      collect(*search);
      return true;
    });
  }
  return out;
}

}  // namespace easydel::generation
