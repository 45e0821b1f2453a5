#include "easydel/train/pairs.h"

#include <ATen/ops/log_sigmoid.h>

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

double total(const Tensor& t) { return t.sum().item<double>(); }

// Removes tokens beyond `most`, at the end or at the beginning; returns how many.
int64_t cut(std::vector<int32_t>& ids, std::optional<int64_t> most, bool keep_start) {
  if (!most || int64_t(ids.size()) <= *most) return 0;
  const auto over = static_cast<std::ptrdiff_t>(ids.size()) - *most;
  if (keep_start)
    ids.erase(ids.end() - over, ids.end());
  else
    ids.erase(ids.begin(), ids.begin() + over);
  return over;
}

}  // namespace

Halves halves(const Tensor& stacked, int64_t answers) {
  const auto parts = stacked.chunk(answers);
  return {parts[0], parts[1]};
}

Tensor smoothed_preference(const Tensor& x, double smoothing) {
  return -(1 - smoothing) * at::log_sigmoid(x) - smoothing * at::log_sigmoid(-x);
}

AnswerLimits limits_of(const TrainerConfig& common, std::optional<int64_t> prompt, std::optional<int64_t> completion) {
  AnswerLimits out{prompt, completion, {}, common.truncation_mode == Truncation::keep_start};
  if (common.max_length.value_or(0) > 0) out.whole = common.max_length;
  return out;
}

data::Prepared prepared_answers(std::vector<int32_t> prompt, std::span<std::vector<int32_t>* const> answers,
                                const AnswerLimits& limits) {
  data::Prepared out;
  out.cut_tokens += cut(prompt, limits.prompt, false);
  data::Example example;
  std::vector<float> counts;
  bool learnable = true;
  for (std::vector<int32_t>* const answer : answers) {
    const auto whole_answer = int64_t(answer->size());
    out.cut_tokens += cut(*answer, limits.completion, true);
    std::vector<int32_t> ids = prompt;
    ids.insert(ids.end(), answer->begin(), answer->end());
    const int64_t over = cut(ids, limits.whole, limits.keep_start);
    out.cut_tokens += over;
    const size_t kept_prompt =
        limits.keep_start ? std::min(prompt.size(), ids.size()) : prompt.size() - std::min(prompt.size(), size_t(over));
    std::vector<uint8_t> learn(ids.size(), 1);
    std::fill_n(learn.begin(), kept_prompt, uint8_t{0});
    const int64_t before = example.labelled();
    example.add_sequence(ids, learn);
    counts.push_back(float(ids.size() - kept_prompt));
    out.mistakes.add_cut(whole_answer, int64_t(ids.size() - kept_prompt));
    learnable &= example.labelled() > before;
  }
  example.set({answer_tokens, data::Column::Per::sequence, std::move(counts)});
  if (learnable) out.example = std::move(example);
  return out;
}

void add_means(Loss& out, const char* name, const Halves& values) {
  const auto pairs = double(values.chosen.size(0));
  out.metrics.push_back({str(name, "/chosen"), total(values.chosen.detach()), pairs});
  out.metrics.push_back({str(name, "/rejected"), total(values.rejected.detach()), pairs});
}

void add_reward_metrics(Loss& out, const Halves& rewards) {
  add_means(out, "rewards", rewards);
  const Tensor chosen = rewards.chosen.detach(), rejected = rewards.rejected.detach();
  const auto pairs = double(chosen.size(0));
  out.metrics.push_back({"rewards/accuracies", total(chosen.gt(rejected)), pairs});
  out.metrics.push_back({"rewards/margins", total(chosen - rejected), pairs});
}

void add_logit_metrics(Loss& out, const SequenceScores& scores, int64_t answers) {
  const Halves counts = halves(scores.lengths, answers);
  const Halves logits = halves(scores.sums(scores.details.mean_logit), answers);
  out.metrics.push_back({"logits/chosen", total(logits.chosen), total(counts.chosen)});
  out.metrics.push_back({"logits/rejected", total(logits.rejected), total(counts.rejected)});
}

void add_token_metrics(Loss& out, const SequenceScores& scores, int64_t answers) {
  out.metrics.push_back({"entropy", total(scores.details.entropy), total(scores.lengths)});
  const Halves correct = halves(scores.sums(scores.details.correct.to(at::kFloat)), answers);
  out.metrics.push_back({"mean_token_accuracy", total(correct.chosen), total(halves(scores.lengths, answers).chosen)});
}

}  // namespace easydel::train
