#include "easydel/esurge/beam_answers.h"

#include <algorithm>
#include <utility>

#include "easydel/esurge/row_logprobs.h"

namespace easydel::esurge {

BeamAnswers::BeamAnswers(const PreparedRequest& prepared, std::shared_ptr<const text::Tokenizer> tokenizer)
    : prepared_(prepared),
      tokenizer_(std::move(tokenizer)),
      beams_(prepared.config, prepared.scheduled.prompt, prepared.prompt_tokens() + prepared.scheduled.max_tokens),
      scores_(size_t(prepared.scheduled.choices)),
      came_(size_t(prepared.scheduled.choices)),
      rows_(size_t(prepared.scheduled.choices)) {}

void BeamAnswers::add_scores(int64_t choice, std::vector<float> scores, std::span<const float> logits) {
  came_[size_t(choice)] = 1;
  if (size_t(choice) >= beams_.running().size()) return;
  const SamplingParams& sampling = prepared_.request.sampling;
  if (sampling.logprobs && sampling.logprobs_mode == LogprobsMode::processed)
    rows_[size_t(choice)] = scores;
  else if (sampling.logprobs)
    rows_[size_t(choice)].assign(logits.begin(), logits.end());
  scores_[size_t(choice)] = std::move(scores);
}

void BeamAnswers::keep_logprobs() {
  const auto keep = [&](const generation::Beam& beam) {
    const size_t index = beam.parents.size() - 1;
    if (index != steps_) return;  // it was complete before
    const TokenId token = beam.tokens.back();
    const std::tuple key{index, beam.parents.back(), token};
    if (!logprobs_.contains(key))
      logprobs_.emplace(key,
                        row_logprobs(rows_[size_t(beam.parents.back())], *prepared_.request.sampling.logprobs, token));
  };
  for (const generation::Beam& beam : beams_.running()) keep(beam);
  for (const generation::Beam& beam : beams_.best(size_t(prepared_.config.num_beams))) keep(beam);
}

bool BeamAnswers::has_all_scores() const { return std::ranges::count(came_, 0) == 0; }

std::vector<BeamStep> BeamAnswers::advance() {
  const std::vector<std::span<float>> rows(scores_.begin(), scores_.begin() + ptrdiff_t(beams_.running().size()));
  const auto min_tokens = size_t(prepared_.request.sampling.min_tokens);
  beams_.advance(rows, [&](std::span<const TokenId> tokens) {
    return !prepared_.stops.empty() && tokens.size() - prepared_.scheduled.prompt.size() >= min_tokens &&
           text_of(tokens).stopped();
  });
  if (prepared_.request.sampling.logprobs) keep_logprobs();
  ++steps_;
  for (std::vector<float>& scores : scores_) scores.clear();
  std::ranges::fill(came_, 0);
  std::vector<BeamStep> steps;
  if (beams_.done()) return steps;
  for (int64_t choice = 0; choice < prepared_.scheduled.choices; ++choice)
    steps.push_back({beam(choice).parents.back(), beam(choice).tokens.back()});
  return steps;
}

bool BeamAnswers::is_end(const std::vector<TokenId>& tokens) const {
  return tokens.size() > prepared_.scheduled.prompt.size() && prepared_.is_end(tokens.back());
}

generation::AnswerText BeamAnswers::text_of(std::span<const TokenId> tokens) const {
  const SamplingParams& sampling = prepared_.request.sampling;
  const size_t prompt = prepared_.scheduled.prompt.size();
  generation::AnswerText text(tokenizer_, prepared_.stops, prepared_.scheduled.prompt,
                              {sampling.skip_special_tokens, sampling.include_stop_str_in_output});
  for (size_t i = prompt; i < tokens.size() && !text.stopped(); ++i)
    text.push(tokens[i], int64_t(i + 1 - prompt) >= sampling.min_tokens);
  return text;
}

std::vector<CompletionOutput> BeamAnswers::outputs(std::optional<FinishReason> reason) const {
  const SamplingParams& sampling = prepared_.request.sampling;
  std::vector<CompletionOutput> out;
  for (const generation::Beam& beam : beams_.best(size_t(sampling.n))) {
    CompletionOutput& one = out.emplace_back();
    const bool ended = is_end(beam.tokens);
    const std::span<const TokenId> all = beam.tokens;
    one.score = beam.score;
    one.num_generated_tokens = int64_t(all.size()) - prepared_.prompt_tokens();
    if (sampling.logprobs)
      for (size_t i = 0; i < beam.parents.size(); ++i) {
        const TokenLogprobs& row = logprobs_.at({i, beam.parents[i], all[size_t(prepared_.prompt_tokens()) + i]});
        one.cumulative_logprob += double(row.chosen_logprob());
        one.logprobs.push_back(row);
      }
    one.finish_reason = ended ? FinishReason::stop : FinishReason::length;
    if (ended) one.stop_reason = beam.tokens.back();
    if (tokenizer_ && sampling.detokenize) {
      generation::AnswerText text = text_of(all.first(all.size() - (ended ? 1 : 0)));
      text.finish();
      one.text = one.delta_text = one.accumulated_text = text.text();
      if (text.stopped()) one.finish_reason = FinishReason::stop, one.stop_reason = text.stop();
    }
    if (!tokenizer_ || !sampling.detokenize || sampling.return_token_ids)
      one.token_ids.assign(all.begin() + prepared_.prompt_tokens(), all.end());
    if (reason) one.finish_reason = *reason;
  }
  // If fewer were found, the others are empty.
  out.resize(size_t(sampling.n));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].index = int64_t(i);
    if (!out[i].finish_reason) out[i].finish_reason = reason.value_or(FinishReason::stop);
  }
  return out;
}

}  // namespace easydel::esurge
