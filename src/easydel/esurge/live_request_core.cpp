#include "easydel/esurge/live_request.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/esurge/pooled_text.h"
#include "easydel/esurge/row_logprobs.h"
#include "easydel/generation/sampler.h"

namespace easydel::esurge {

namespace {

UserError bad_scores() {
  return UserError("model", "its scores are not numbers (NaN)",
                   "its weights contain NaN, or their values overflow the dtype");
}
[[noreturn]] void refuse_scores() { throw bad_scores(); }

}  // namespace

Answer::Answer(const PreparedRequest& prepared, int64_t choice, std::shared_ptr<const text::Tokenizer> tokenizer,
               int64_t vocabulary, const DraftOptions& lookup, bool measures)
    : prepared_(prepared),
      choice_(choice),
      vocabulary_(vocabulary),
      measures_(measures),
      masks_(prepared.masks(vocabulary, measured_.mask_seconds)),
      chain_(prepared.chain(vocabulary, masks_)),
      tokens_(prepared.scheduled.prompt),
      draft_count_(lookup.max_drafts, lookup.price) {
  const SamplingParams& sampling = prepared.request.sampling;
  if (prepared.reasoning)
    reasoning_.emplace(*prepared.reasoning, text::DecodeStream(tokenizer, false, prepared.scheduled.prompt));
  if (tokenizer && sampling.detokenize)
    text_.emplace(std::move(tokenizer), prepared.stops, prepared.scheduled.prompt,
                  generation::AnswerText::Options{sampling.skip_special_tokens, sampling.include_stop_str_in_output});
  if (lookup.max_drafts > 0 && !lookup.by_model && !prepared.scheduled.beams)
    lookup_.emplace(lookup.min_ngram, lookup.max_ngram);
}

const std::vector<TokenId>& Answer::propose(int64_t rows) {
  drafts_.clear();
  if (!lookup_ || ended() || generated() == 0) return drafts_;
  lookup_->add(std::span(tokens_).subspan(size_t(lookup_->size())));
  const int64_t count = draft_count_.next(rows);
  drafts_ = lookup_->propose(std::max<int64_t>(count, 1));
  if (count == 0 && !drafts_.empty()) draft_count_.record(0, 0), drafts_.clear();
  return drafts_;
}

int64_t Answer::wanted_drafts(int64_t rows) {
  if (ended() || generated() == 0 || prepared_.scheduled.beams) return 0;
  const int64_t count = draft_count_.next(rows);
  if (count == 0) draft_count_.record(0, 0);
  return count;
}

std::span<const float> Answer::processed(std::span<const float> logits, std::span<const TokenId> history) const {
  const auto size = size_t(vocabulary_);
  if (chain_.empty() && logits.size() == size) return logits;
  thread_local std::vector<float> own;
  own.assign(logits.begin(), logits.begin() + ptrdiff_t(std::min(logits.size(), size)));
  own.resize(size, generation::never_drawn);
  apply(chain_, {history, prepared_.scheduled.prompt.size()}, own);
  return own;
}

TokenId Answer::pick(std::span<const float> scores, size_t position) const {
  if (prepared_.config.greedy()) return generation::likeliest(scores);
  return generation::pick(scores, generation::draw(prepared_.config.seed, uint64_t(choice_), position));
}

TokenId Answer::guess(std::span<const float> logits, std::span<const TokenId> drafts) const {
  std::vector<TokenId> history = tokens_;
  history.insert(history.end(), drafts.begin(), drafts.end());
  return pick(processed(logits, history), history.size());
}

std::vector<float> Answer::beam_scores(std::span<const float> logits) const {
  const auto size = std::min(logits.size(), size_t(vocabulary_));
  std::vector<float> scores(logits.begin(), logits.begin() + ptrdiff_t(size));
  scores.resize(size_t(vocabulary_), generation::never_drawn);
  generation::log_softmax(scores);
  if (std::isnan(scores.front()) && std::isnan(scores.back()) && !prepared_.config.remove_invalid_values)
    refuse_scores();
  apply(chain_, {tokens_, prepared_.scheduled.prompt.size()}, scores);
  return scores;
}

TokenId Answer::choose(std::span<const float> logits) {
  const SamplingParams& sampling = prepared_.request.sampling;
  const std::span<const float> scores = processed(logits, tokens_);
  const TokenId token = pick(scores, tokens_.size());
  // These scores are gone when accept() is called.
  if (sampling.logprobs && sampling.logprobs_mode == LogprobsMode::processed)
    logprobs_.push_back(row_logprobs(scores, *sampling.logprobs, token));
  tokens_.push_back(token);
  return token;
}

void Answer::prepare_mask() {
  if (masks_ && !ended()) try {
      masks_->prepare(tokens_);
    } catch (const UserError&) {
      // choose() meets the same error.
    }
}

Answer::Measured Answer::take_measured() {
  Measured out = measured_;
  // The chain refers to the list of seconds, which stays where it is.
  measured_.mask_seconds.clear(), measured_.entropies.clear(), measured_.surprises.clear();
  return out;
}

void Answer::accept(std::span<const float> logits) {
  const SamplingParams& sampling = prepared_.request.sampling;
  const TokenId token = tokens_.back();
  const float logprob = row_logprob(logits, token);
  // One NaN or infinity in the row shows in every log-probability of it.
  if (!std::isfinite(logprob) && !prepared_.config.remove_invalid_values) {
    tokens_.pop_back();
    logprobs_.resize(std::min(logprobs_.size(), size_t(generated())));
    refuse_scores();
  }
  cumulative_logprob_ += double(logprob);
  if (measures_) measured_.entropies.push_back(row_entropy(logits)), measured_.surprises.push_back(-logprob);
  if (sampling.logprobs && sampling.logprobs_mode != LogprobsMode::processed)
    logprobs_.push_back(row_logprobs(logits, *sampling.logprobs, token));
  if (prepared_.is_end(token)) {
    end(FinishReason::stop);
    if (stop_reason_.index() == 0) stop_reason_ = token;
    return;
  }
  if (text_) {
    const bool reasons = reasoning_ && reasoning_->watch.push(reasoning_->text.push(token));
    text_->push(token, !reasons && generated() >= prepared_.request.sampling.min_tokens);
    if (text_->stopped()) return end(FinishReason::stop);
  }
  if (generated() >= prepared_.scheduled.max_tokens) end(FinishReason::length);
}

void Answer::end(FinishReason reason) {
  if (reason_) return;
  reason_ = reason;
  if (!text_) return;
  // What was held back may be a stop string that nothing can follow any more.
  try {
    text_->finish();
  } catch (...) {
    reason_ = FinishReason::error;
    throw;
  }
  if (text_->stopped() && reason != FinishReason::error) {
    reason_ = reason == FinishReason::abort ? reason : FinishReason::stop;
    stop_reason_ = text_->stop();
  }
}

CompletionOutput Answer::output(bool all) {
  const SamplingParams& sampling = prepared_.request.sampling;
  const size_t prompt = prepared_.scheduled.prompt.size(), count = tokens_.size() - prompt;
  const size_t first = all ? 0 : shown_tokens_, first_byte = all ? 0 : shown_bytes_;
  CompletionOutput out;
  out.index = choice_;
  out.num_generated_tokens = int64_t(count);
  out.cumulative_logprob = cumulative_logprob_;
  out.finish_reason = reason_;
  out.stop_reason = stop_reason_;
  if (text_) {
    out.text = text_->text().substr(first_byte);
    out.delta_text = text_->text().substr(shown_bytes_);
    out.accumulated_text = text_->text();
    shown_bytes_ = text_->text().size();
  }
  if (!text_ || sampling.return_token_ids)
    out.token_ids.assign(tokens_.begin() + int64_t(prompt + first), tokens_.end());
  if (!logprobs_.empty()) out.logprobs.assign(logprobs_.begin() + int64_t(first), logprobs_.end());
  shown_tokens_ = count;
  return out;
}

LiveRequest::LiveRequest(RequestId own_id, PreparedRequest own, OnOutput listener,
                         const std::shared_ptr<const text::Tokenizer>& tokenizer, int64_t vocabulary,
                         const DraftOptions& lookup, bool measures, double now)
    : id(own_id), prepared(std::move(own)), on_output(std::move(listener)), arrived(now) {
  unended = prepared.scheduled.choices;
  for (int64_t choice = 0; choice < unended; ++choice)
    answers.push_back(std::make_unique<Answer>(prepared, choice, tokenizer, vocabulary, lookup, measures));
  if (prepared.is_pooled()) pooled = std::make_shared<PooledText>(prepared.scheduled.prompt, *prepared.request.pooled);
  if (prepared.is_beam_search()) beams = std::make_unique<BeamAnswers>(prepared, tokenizer);
  if (prepared.is_guided())
    guided = std::make_unique<GuidedRows>(prepared.scheduled.choices, prepared.config.guidance_scale);
  const auto* const chat = std::get_if<Conversation>(&prepared.request.prompt);
  if (!chat || prepared.is_scored() || pooled) return;
  text::OutputOptions options;
  options.tools = chat->tools, options.parse_tools = !chat->tools.is_null(), options.begun = prepared.begun;
  options.certain = true;
  for (int64_t choice = 0; choice < unended; ++choice)
    parsed_.push_back({text::OutputParser(prepared.format, options)});
}

std::vector<TokenId> LiveRequest::tokens_read(SequenceId sequence, int64_t begin, int64_t end) const {
  const std::vector<TokenId>& own = answers[size_t(sequence.choice)]->tokens();
  const bool negative = sequence.request == negative_id;
  const int64_t prompt = prompt_read(sequence.request);
  std::vector<TokenId> out;
  for (int64_t i = begin; i < end; ++i) {
    const auto at = size_t(negative ? prepared.prompt_tokens() + i - prompt : i);
    if (negative && i < prompt)
      out.push_back(prepared.negative_prompt[size_t(i)]);
    else if (at < own.size())
      out.push_back(own[at]);
    else if (guided)
      out.push_back(own.back());  // advance_guided() lets an answer that has ended go on with it
    else
      break;
  }
  return out;
}

std::vector<BeamStep> LiveRequest::advance_guided() {
  std::vector<BeamStep> steps;
  bool go_on = false;
  for (int64_t choice = 0; choice < int64_t(answers.size()); ++choice) {
    Answer& answer = *answers[size_t(choice)];
    const std::vector<float> scores = guided->guided(choice);
    if (beams) {
      beams->add_scores(choice, answer.beam_scores(scores), guided->after_prompt(choice));
      continue;
    }
    // One that has ended goes on with others, for nothing.
    if (!answer.ended()) {
      if (std::isnan(scores.front()) && std::isnan(scores.back()) && !prepared.config.remove_invalid_values)
        refuse_scores();
      answer.choose(scores);
      answer.accept(guided->after_prompt(choice));
    }
    steps.push_back({choice, answer.tokens().back()});
    go_on |= !answer.ended();
  }
  guided->clear();
  if (!go_on) steps.clear();
  return steps;
}

std::optional<int64_t> LiveRequest::scored_from() const {
  if (prepared.is_scored()) return prepared.first_score() + int64_t(scores.each.size());
  if (!prepared.scheduled.prompt_scores) return std::nullopt;
  return std::ssize(prepared.scheduled.prompt_scores->rows);
}

LiveRequest::ReadRow LiveRequest::read_row(const ScoredRow& row) const {
  if (prepared.is_scored()) {
    const TokenId token = continuation_token(row.position);
    return {{}, row_logprob(row.logits, token), generation::likeliest(row.logits) == token};
  }
  const TokenId next = prepared.scheduled.prompt[size_t(row.position) + 1];
  return {row_logprobs(row.logits, prepared.scheduled.prompt_scores->count, next)};
}

void LiveRequest::add_row(int64_t position, ReadRow row) {
  if (position != scored_from() || !error.empty()) return;  // computed again
  if (prepared.is_scored()) {
    if (std::isnan(row.logprob)) error = "score: the model's log-probabilities are not numbers";
    scores.each.push_back(row.logprob);
    scores.is_greedy &= row.is_greedy;
  } else if (std::isfinite(row.logprobs.chosen_logprob())) {
    prepared.scheduled.prompt_scores->rows.push_back(std::move(row.logprobs));
  } else {
    error = bad_scores().what();
  }
}

void LiveRequest::end(const SequenceEnd& end) {
  changed = true;
  --unended;
  preemptions += end.preemptions, recomputed_tokens += end.recomputed_tokens;
  cached_tokens = std::max(cached_tokens, end.cached_tokens);
  timed_out |= end.timed_out;
  try {
    answers[size_t(end.id.choice)]->end(error.empty() ? end.reason : FinishReason::error);
  } catch (const std::exception& failed) {  // its tokenizer
    if (error.empty()) error = failed.what();
  }
}

bool LiveRequest::has_output() const {
  if (unended == 0) return !end_shown;
  const SamplingParams& sampling = prepared.request.sampling;
  return changed && !beams && sampling.output_kind != OutputKind::final_only && sampling.choices_drawn() == sampling.n;
}

std::vector<CompletionOutput> LiveRequest::outputs(bool finished) {
  if (beams) {
    const std::optional<FinishReason> reason = answers[0]->reason();
    const bool own = !reason || *reason == FinishReason::stop || *reason == FinishReason::length;
    std::vector<CompletionOutput> out = beams->outputs(own ? std::nullopt : reason);
    for (size_t i = 0; i < out.size(); ++i) parse(out[i], i);
    return out;
  }
  const SamplingParams& sampling = prepared.request.sampling;
  std::vector<size_t> order(answers.size());
  std::iota(order.begin(), order.end(), size_t(0));
  if (finished && sampling.choices_drawn() > sampling.n) {
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return answers[i]->mean_logprob(); });
    order.resize(size_t(sampling.n));
  }
  std::vector<CompletionOutput> out;
  for (const size_t i : order) {
    out.push_back(answers[i]->output(sampling.output_kind != OutputKind::delta));
    parse(out.back(), i);
    if (order.size() < answers.size()) out.back().index = int64_t(out.size()) - 1;
  }
  return out;
}

// Divides the answer's text into content, reasoning and calls. What was given out is never withdrawn.
void LiveRequest::parse(CompletionOutput& output, size_t answer) {
  if (parsed_.empty()) return;
  Parsed& parsed = parsed_[answer];
  text::Message& message = parsed.message;
  const size_t content = message.content.size(), reasoning = message.reasoning.size(),
               calls = message.tool_calls.size();
  apply(parsed.parser.feed(std::string_view(output.accumulated_text).substr(parsed.read)), message);
  parsed.read = output.accumulated_text.size();
  if (output.finish_reason && !std::exchange(parsed.finished, true)) apply(parsed.parser.finish(), message);
  output.delta_text = message.content.substr(content);
  const bool is_new = prepared.request.sampling.output_kind == OutputKind::delta;
  output.text = is_new ? output.delta_text : message.content;
  output.reasoning_content = message.reasoning.substr(is_new ? reasoning : 0);
  const std::vector<text::ToolCall> shown(message.tool_calls.begin() + int64_t(is_new ? calls : 0),
                                          message.tool_calls.end());
  if (!shown.empty()) output.tool_calls = text::tool_calls_document(shown);
}

RequestOutput LiveRequest::output(double now) {
  RequestOutput out;
  out.finished = end_shown = unended == 0;
  out.request_id = prepared.request.request_id;
  out.prompt = prepared.prompt;
  out.prompt_token_ids = prepared.scheduled.prompt;
  if (pooled) {
    if (out.finished && error.empty() && !pooled->vector().empty()) out.vector = pooled->vector();
  } else if (prepared.is_scored()) {
    out.scores = scores;
    for (const float each : scores.each) out.scores->logprob += double(each);
  } else {
    try {
      out.outputs = outputs(out.finished);
    } catch (const std::exception& failed) {  // the texts of beams are decoded here
      if (error.empty()) error = failed.what();
    }
  }
  // A stream begins with them; they stay, because a preempted prompt is computed again.
  const bool streamed = prepared.request.sampling.output_kind == OutputKind::delta;
  if (out.finished || (streamed && first_token))
    if (const auto& scores = prepared.scheduled.prompt_scores; scores && !std::exchange(prompt_shown, true))
      out.prompt_logprobs = scores->rows;
  out.error = error;
  out.timed_out = timed_out;
  out.update_seq = ++update_seq;
  if (beams)
    for (const CompletionOutput& one : out.outputs) out.num_generated_tokens += one.num_generated_tokens;
  else
    for (const auto& answer : answers) out.num_generated_tokens += answer->generated();
  if (!out.outputs.empty()) {
    out.accumulated_text = out.outputs[0].accumulated_text;
    out.delta_text = out.outputs[0].delta_text;
  }
  out.processing_time = now - arrived;
  if (admitted) out.queue_time = *admitted - arrived;
  if (first_token) {
    out.first_token_time = *first_token - arrived;
    out.time_spent_generating = *last_token - *first_token;
    if (out.time_spent_generating > 0)
      out.tokens_per_second = double(out.num_generated_tokens) / out.time_spent_generating;
  }
  out.cached_tokens = cached_tokens;
  out.truncated_tokens = prepared.truncated_tokens, out.capped_tokens = prepared.capped_tokens;
  out.preemptions = preemptions;
  out.accepted_drafts = accepted_drafts, out.rejected_drafts = rejected_drafts;
  out.seed = prepared.config.seed;
  out.fingerprint = fingerprint;
  changed = false;
  return out;
}

}  // namespace easydel::esurge
