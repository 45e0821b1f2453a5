#include "easydel/esurge/prepared_request.h"

#include <algorithm>
#include <random>
#include <utility>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/esurge/context.h"
#include "easydel/esurge/wrong_constraint.h"
#include "easydel/generation/constrained.h"

namespace easydel::esurge {
namespace {

void check_ids(const auto& ids, const char* where, int64_t vocabulary) {
  for (const int64_t id : ids)
    if (id < 0 || id >= vocabulary)
      refuse(where, str("has the token id ", id, "; the model's vocabulary has ", vocabulary),
             "use the model's own tokenizer");
}

// The tokens of a word, at the beginning of a text and after a blank; none if it needs the unknown token.
std::vector<std::vector<int64_t>> spellings(const text::Tokenizer& tokenizer, const std::string& word) {
  std::vector<std::vector<int64_t>> out;
  for (const char* before : {"", " "}) {
    const std::vector<TokenId> ids =
        tokenizer.encode(before + word, {.add_special_tokens = false, .parse_special = true});
    std::vector<int64_t> one(ids.begin(), ids.end());
    const std::optional<TokenId> unknown = tokenizer.unk_id();
    if (unknown && std::ranges::find(ids, *unknown) != ids.end()) continue;
    if (!one.empty() && std::ranges::find(out, one) == out.end()) out.push_back(std::move(one));
  }
  return out;
}

// Of a request that generates nothing.
void refuse_without_effect(const Request& request, const char* what) {
  const SamplingParams& given = request.sampling;
  SamplingParams plain;
  plain.priority = given.priority, plain.cache_salt = given.cache_salt;
  plain.timeout_seconds = given.timeout_seconds, plain.adapter = given.adapter;
  const Value all = config::write(given), needed = config::write(plain);
  for (const auto& [key, value] : all.entries)
    if (const Value* const other = needed.find(key); !other || to_json(*other) != to_json(value))
      refuse(str("sampling.", key), str("has no effect on ", what), "leave it out");
  if (request.negative_prompt) refuse("negative_prompt", str("has no effect on ", what), "leave it out");
}

uint64_t new_seed() {
  std::random_device device;
  return (uint64_t(device()) << 31) ^ device();
}

// Forces the end of the reasoning where its budget is used up; elsewhere `others` decide.
generation::AllowedTokens within_budget(const ReasoningBudget& budget, std::shared_ptr<const text::Tokenizer> tokenizer,
                                        size_t prompt, int64_t vocabulary, generation::AllowedTokens others) {
  const std::vector<TokenId> end = tokenizer->encode(budget.end.close, {.add_special_tokens = false});
  const auto is_in = [](const std::string& text) {
    return [&text](const std::string& marker) { return text.find(marker) != std::string::npos; };
  };
  return [=, mask = std::vector<uint64_t>(text::constrain::mask_words(vocabulary))](
             std::span<const TokenId> before) mutable -> std::span<const uint64_t> {
    const size_t answered = before.size() - prompt, most = size_t(budget.tokens);
    bool forced = answered >= most && answered - most < end.size();
    if (forced) {
      const std::span<const TokenId> reasoning = before.subspan(prompt, most);
      const std::string text = tokenizer->decode(reasoning, false);
      const bool begun = budget.end.opens.empty() || std::ranges::any_of(budget.end.opens, is_in(text));
      forced = begun && text.find(budget.end.close) == std::string::npos;
    }
    if (!forced && others) return others(before);
    std::ranges::fill(mask, forced ? 0 : ~uint64_t(0));
    if (forced) mask[size_t(end[answered - most]) / 64] = uint64_t(1) << (size_t(end[answered - most]) % 64);
    return mask;
  };
}

}  // namespace

bool PreparedRequest::is_end(TokenId token) const {
  return std::ranges::find(config.eos_token_id, int64_t(token)) != config.eos_token_id.end();
}

std::span<const uint64_t> AllowedMasks::allowed(std::span<const TokenId> before) {
  const bool is_made = prepared_for_ == before.size();
  prepared_for_.reset();
  if (!is_made) {
    prepare(before);
    prepared_for_.reset();
  }
  return prepared_;
}

void AllowedMasks::prepare(std::span<const TokenId> before) {
  const Clock::time_point began = Clock::now();
  prepared_ = make_(before);
  prepared_for_ = before.size();
  seconds_.push_back(seconds_since(began));
}

std::shared_ptr<AllowedMasks> PreparedRequest::masks(int64_t vocabulary, std::vector<double>& mask_seconds) const {
  generation::AllowedTokens tokens;
  if (constraint) tokens = generation::allowed_by(constraint, scheduled.prompt.size());
  if (!allowed.empty())
    tokens = [of_constraint = std::move(tokens), own = allowed,
              both = std::vector<uint64_t>(allowed.size())](std::span<const TokenId> before) mutable {
      if (!of_constraint) return std::span<const uint64_t>(own);
      const std::span<const uint64_t> may = of_constraint(before);
      bool any = false;
      for (size_t i = 0; i < both.size(); ++i) any |= (both[i] = i < may.size() ? own[i] & may[i] : 0) != 0;
      if (!any)
        refuse("allowed_token_ids", "none of them can go on where guided_decoding has come to",
               "allow what the constraint needs");
      return std::span<const uint64_t>(both);
    };
  if (request.reasoning_budget)
    tokens =
        within_budget(*request.reasoning_budget, tokenizer, scheduled.prompt.size(), vocabulary, std::move(tokens));
  return tokens ? std::make_shared<AllowedMasks>(std::move(tokens), mask_seconds) : nullptr;
}

generation::Chain PreparedRequest::chain(int64_t vocabulary, const std::shared_ptr<AllowedMasks>& masks) const {
  generation::AllowedTokens tokens;
  if (masks) tokens = [masks](std::span<const TokenId> before) { return masks->allowed(before); };
  return generation::make_chain(config, {scheduled.prompt, prompt_tokens() + scheduled.max_tokens, vocabulary, tokens});
}

RequestPreparer::RequestPreparer(std::shared_ptr<const text::Tokenizer> tokenizer, const EsurgeConfig& config,
                                 int64_t max_model_len, int64_t vocabulary, generation::GenerationConfig defaults,
                                 const std::optional<std::string>& chat_template, PoolingRules pooling)
    : tokenizer_(std::move(tokenizer)),
      config_(config),
      max_model_len_(max_model_len),
      vocabulary_(vocabulary),
      defaults_(std::move(defaults)),
      pooling_(std::move(pooling)) {
  if (!tokenizer_ || pooling_.only) return;
  constraints_ = std::make_unique<ConstraintCache>(tokenizer_, vocabulary_);
  const std::optional<std::string> own = chat_template ? chat_template : tokenizer_->chat_template();
  if (!own) return;
  renderer_.emplace(tokenizer_, chat_template);
  format_ = text::detect_output_format(*own);
  if (config.tool_parser) format_.tools = *config.tool_parser;
  if (config.reasoning_parser) format_.reasoning = *config.reasoning_parser;
  text::OutputParser{format_};  // refuses an unknown name
}

void RequestPreparer::settle_format(PreparedRequest& prepared) const {
  const auto* chat = std::get_if<Conversation>(&prepared.request.prompt);
  prepared.reasoning = prepared.request.reasoning;
  if (!chat) return;
  prepared.format = format_;
  const std::string text = renderer_->text(
      chat->messages, {.tools = chat->tools, .add_generation_prompt = true, .extra = chat->chat_template_kwargs});
  prepared.begun = text::begun_answer(text, format_);
  prepared.reasoning.emplace(format_, prepared.begun, text::OutputOptions::Thinking::unset);
}

std::vector<TokenId> RequestPreparer::tokens_of(const Prompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) return *ids;
  if (!tokenizer_) refuse("prompt", "is text, and the engine has no tokenizer", "give token ids");
  if (const auto* text = std::get_if<std::string>(&prompt)) return tokenizer_->encode(*text);
  const auto& chat = std::get<Conversation>(prompt);
  if (!renderer_) refuse("messages", "the model has no chat template", "give a prompt, or model.chat_template");
  return renderer_->ids(chat.messages,
                        {.tools = chat.tools, .add_generation_prompt = true, .extra = chat.chat_template_kwargs});
}

void RequestPreparer::settle_config(PreparedRequest& prepared) const {
  const SamplingParams& sampling = prepared.request.sampling;
  generation::GenerationConfig& config = prepared.config;
  const std::optional<generation::GenerationConfig>& given = prepared.request.generation;
  config = given ? *given : sampling.generation();
  const auto not_built = [](bool asked, const char* what) {
    if (asked) refuse(str("extra_args.", what), "is not built yet for the engine", "use `easydel generate`");
  };
  if (config.num_beams > 1) {
    if (sampling.n > config.num_beams)
      refuse("n", str(sampling.n, " is more than num_beams ", config.num_beams), "raise num_beams or lower n");
    if (sampling.best_of) refuse("best_of", "a beam search returns its best beams by itself", "leave it out");
  }
  not_built(config.output_scores, "output_scores");
  not_built(config.output_logits, "output_logits");
  // A text under a constraint has an end in any case.
  if (!given && (!sampling.ignore_eos || sampling.guided_decoding || prepared.request.constraint)) {
    config.eos_token_id = defaults_.eos_token_id;
    if (config_.extra_eos_token_ids)
      for (const int64_t id : *config_.extra_eos_token_ids) config.eos_token_id.push_back(id);
  }
  for (const int64_t id : sampling.stop_token_ids) config.eos_token_id.push_back(id);
  check_ids(config.eos_token_id, "stop_token_ids", vocabulary_);
  check_ids(config.suppress_tokens, "suppress_tokens", vocabulary_);
  for (const generation::SequenceBias& entry : config.sequence_bias) check_ids(entry.tokens, "logit_bias", vocabulary_);
  for (const std::string& word : sampling.bad_words) {
    if (!tokenizer_) refuse("bad_words", "the engine has no tokenizer", "give bad_words_ids in extra_args");
    auto words = spellings(*tokenizer_, word);
    if (words.empty())
      refuse("bad_words", str("'", word, "' cannot be written with the model's tokens"), "take it out");
    std::ranges::move(words, std::back_inserter(config.bad_words_ids));
  }
  for (const auto& word : config.bad_words_ids) check_ids(word, "bad_words", vocabulary_);
  if (!given && !sampling.seed) config.seed = new_seed();
  prepared.stops.assign(sampling.stop.begin(), sampling.stop.end());
  prepared.stops.insert(prepared.stops.end(), config_.extra_stops.begin(), config_.extra_stops.end());
  prepared.stops.insert(prepared.stops.end(), config.stop_strings.begin(), config.stop_strings.end());
  if (prepared.stops.empty() || !config_.ignore_stop_strings_in_reasoning) prepared.reasoning.reset();
  if (!prepared.stops.empty() && !tokenizer_) refuse("stop", "stop strings need a tokenizer", "stop by stop_token_ids");
  check_together(config);
}

void RequestPreparer::settle_guidance(PreparedRequest& prepared) const {
  const std::optional<Prompt>& given = prepared.request.negative_prompt;
  if (!prepared.is_guided()) {
    if (given)
      refuse("negative_prompt", "has no effect without guidance_scale", "give extra_args.guidance_scale, such as 1.5");
    return;
  }
  const SchedulerRequest& scheduled = prepared.scheduled;
  std::vector<TokenId>& negative = prepared.negative_prompt;
  if (given) negative = tokens_of(*given);
  if (negative.empty()) negative = {scheduled.prompt.back()};
  check_ids(negative, "negative_prompt", vocabulary_);
  if (const auto size = int64_t(negative.size()); size + scheduled.max_tokens > max_model_len_)
    refuse(
        "negative_prompt",
        str("has ", size, " tokens, and the answer up to ", scheduled.max_tokens, "; the context has ", max_model_len_),
        "shorten it, or lower max_tokens");
}

void RequestPreparer::settle_constraint(PreparedRequest& prepared) const {
  const SamplingParams& sampling = prepared.request.sampling;
  if (sampling.allowed_token_ids) {
    check_ids(*sampling.allowed_token_ids, "allowed_token_ids", vocabulary_);
    prepared.allowed.resize(text::constrain::mask_words(vocabulary_));
    for (const int64_t id : *sampling.allowed_token_ids) prepared.allowed[size_t(id) / 64] |= uint64_t(1) << (id % 64);
  }
  const std::optional<text::constrain::Language>& own = prepared.request.constraint;
  if (own && sampling.guided_decoding)
    refuse("guided_decoding", "the request has a constraint already", "give one of them");
  if (!own && !sampling.guided_decoding) return;
  if (!tokenizer_) refuse("guided_decoding", "needs a tokenizer");
  const auto& ends = prepared.config.eos_token_id;
  if (ends.empty())
    refuse("guided_decoding", "the model has no end token, so no text could end", "give stop_token_ids");
  try {
    prepared.constraint = constraints_->get(own ? *own : sampling.guided_decoding->language(),
                                            std::vector<TokenId>(ends.begin(), ends.end()));
  } catch (const UserError& error) {
    throw WrongConstraint(error);
  }
}

// The rules are those of generation/scorer.h, where max_model_len is the longest text that the model reads.
void RequestPreparer::prepare_scores(PreparedRequest& prepared) const {
  const std::vector<TokenId>& continuation = *prepared.request.continuation;
  const SamplingParams& given = prepared.request.sampling;
  refuse_without_effect(prepared.request, "the scores of a continuation");
  std::vector<TokenId>& prompt = prepared.scheduled.prompt = tokens_of(prepared.request.prompt);
  if (prompt.empty()) refuse("prompt", "has no tokens", "give at least one token, such as the tokenizer's BOS");
  if (continuation.empty()) refuse("continuation", "has no tokens");
  if (int64_t(continuation.size()) > max_model_len_)
    refuse("continuation", str("has ", continuation.size(), " tokens; the engine reads at most ", max_model_len_),
           "raise esurge.max_model_len, if the model has the positions");
  check_ids(prompt, "prompt", vocabulary_);
  check_ids(continuation, "continuation", vocabulary_);
  prompt.insert(prompt.end(), continuation.begin(), continuation.end() - 1);
  prepared.truncated_tokens = std::max<int64_t>(0, int64_t(prompt.size()) - max_model_len_);
  prompt.erase(prompt.begin(), prompt.begin() + prepared.truncated_tokens);
  SchedulerRequest& scheduled = prepared.scheduled;
  scheduled.max_tokens = 1;  // the row of the last token that is read
  scheduled.priority = given.priority;
  scheduled.root.salt = given.cache_salt.value_or("");
  scheduled.max_cached_tokens = prepared.first_score();
  prepared.request.sampling.output_kind = OutputKind::final_only;
}

void RequestPreparer::prepare_pooled(PreparedRequest& prepared) const {
  const SamplingParams& given = prepared.request.sampling;
  refuse_without_effect(prepared.request, "the vector of a text");
  if (prepared.request.continuation)
    refuse("continuation", "a request gives a vector or scores a continuation, not both", "give one of them");
  if (!pooling_.refusal.empty()) throw UserError("pooled", "this model's texts cannot be pooled: " + pooling_.refusal);
  std::vector<TokenId>& prompt = prepared.scheduled.prompt = tokens_of(prepared.request.prompt);
  const auto size = int64_t(prompt.size());
  if (prompt.empty()) refuse("prompt", "has no tokens", "give at least one token");
  if (size > max_model_len_)
    refuse("prompt", str("has ", size, " tokens; the engine reads at most ", max_model_len_),
           "raise esurge.max_model_len, if the model has the positions");
  if (pooling_.max_tokens && size > *pooling_.max_tokens)
    refuse("prompt",
           str("has ", size, " tokens, which one step computes whole; a step has at most ", *pooling_.max_tokens),
           "shorten the text, or raise esurge.max_num_batched_tokens");
  check_ids(prompt, "prompt", vocabulary_);
  PooledPrompt& pooled = *prepared.request.pooled;
  if (!pooled.type_ids.empty() && int64_t(pooled.type_ids.size()) != size)
    refuse("pooled", str("has ", pooled.type_ids.size(), " type ids for ", size, " tokens"), "give one for each token");
  check(pooled.prompt_tokens >= 0, "pooled: a prompt of ", pooled.prompt_tokens, " tokens before the text");
  SchedulerRequest& scheduled = prepared.scheduled;
  scheduled.max_tokens = 1;  // it ends with its last token
  scheduled.priority = given.priority;
  scheduled.root.salt = given.cache_salt.value_or("");
  scheduled.max_cached_tokens = 0;  // the index has no hidden states
  prepared.request.sampling.output_kind = OutputKind::final_only;
}

PreparedRequest RequestPreparer::prepare(Request request) const {
  PreparedRequest out;
  out.request = std::move(request);
  // Parameters that C++ code has set were not checked by anybody.
  out.request.sampling = read_sampling_params(config::write(out.request.sampling));
  if (out.request.pooled) {
    prepare_pooled(out);
    return out;
  }
  if (pooling_.only)
    refuse("model", "this engine makes vectors of whole texts, and generates and scores nothing",
           "ask for a vector (pooled), or serve a causal language model");
  if (out.request.continuation) {
    prepare_scores(out);
    return out;
  }
  const SamplingParams& sampling = out.request.sampling;
  std::vector<TokenId> prompt = tokens_of(out.request.prompt);
  settle_format(out);
  if (prompt.empty() && defaults_.bos_token_id) prompt = {TokenId(*defaults_.bos_token_id)};
  if (prompt.empty() && tokenizer_ && tokenizer_->bos_id()) prompt = {*tokenizer_->bos_id()};
  if (prompt.empty()) refuse("prompt", "has no tokens", "give at least one token, such as the tokenizer's BOS");
  check_ids(prompt, "prompt", vocabulary_);
  if (sampling.truncate_prompt_tokens && int64_t(prompt.size()) > *sampling.truncate_prompt_tokens) {
    out.truncated_tokens = int64_t(prompt.size()) - *sampling.truncate_prompt_tokens;
    prompt.erase(prompt.begin(), prompt.begin() + out.truncated_tokens);
  }
  FittedPrompt fitted = fit_context(std::move(prompt), sampling.max_tokens, max_model_len_, config_);
  out.truncated_tokens += fitted.truncated_tokens, out.capped_tokens = fitted.capped_tokens;
  settle_config(out);
  settle_constraint(out);
  out.tokenizer = tokenizer_;
  if (out.request.reasoning_budget && !tokenizer_) refuse("reasoning_budget", "needs a tokenizer");
  SchedulerRequest& scheduled = out.scheduled;
  scheduled.prompt = std::move(fitted.tokens);
  // What they go on with is decided when all rows of a request are there.
  scheduled.beams = out.is_beam_search() || out.is_guided();
  scheduled.choices = out.is_beam_search() ? out.config.num_beams : sampling.choices_drawn();
  scheduled.max_tokens = fitted.max_tokens;
  settle_guidance(out);
  scheduled.priority = sampling.priority;
  scheduled.root.salt = sampling.cache_salt.value_or("");
  if (sampling.prompt_logprobs)
    scheduled.prompt_scores = std::make_shared<PromptScores>(PromptScores{*sampling.prompt_logprobs});
  out.config.max_new_tokens = scheduled.max_tokens;
  if (const auto* text = std::get_if<std::string>(&out.request.prompt); text && out.truncated_tokens == 0)
    out.prompt = *text;
  else if (tokenizer_ && config_.decode_truncated_prompt)
    out.prompt = tokenizer_->decode(scheduled.prompt, false);
  return out;
}

}  // namespace easydel::esurge
