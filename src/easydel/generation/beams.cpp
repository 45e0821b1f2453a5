#include "easydel/generation/beams.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/generation/sampler.h"

namespace easydel::generation {

Beams::Beams(const GenerationConfig& config, std::vector<TokenId> prompt, int64_t max_length)
    : config_(config),
      prompt_(prompt.size()),
      width_(size_t(config.num_beams)),
      considered_(std::max<size_t>(2, 1 + config.eos_token_id.size()) * width_),
      max_length_(max_length) {
  running_.push_back({.tokens = std::move(prompt), .parents = {}});
}

std::vector<Beams::Candidate> Beams::candidates(std::span<const std::span<float>> rows) const {
  std::vector<Candidate> out;
  const size_t vocabulary = rows[0].size();
  if (!config_.greedy()) {
    std::vector<float> scores;
    scores.reserve(rows.size() * vocabulary);
    for (size_t beam = 0; beam < rows.size(); ++beam)
      for (const float score : rows[beam]) scores.push_back(score + running_[beam].score);
    for (const size_t i : pick_several(scores, considered_, config_.seed, running_[0].tokens.size()))
      if (scores[i] != never_drawn) out.push_back({scores[i], i / vocabulary, static_cast<TokenId>(i % vocabulary)});
    return out;
  }
  // A heap of the best candidates so far, the worst of them in front.
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
  };
  for (size_t beam = 0; beam < rows.size(); ++beam)
    for (size_t token = 0; token < vocabulary; ++token) {
      const float score = rows[beam][token] + running_[beam].score;
      if (!(score > never_drawn) || (out.size() == considered_ && score <= out.front().score)) continue;
      if (out.size() == considered_) {
        std::ranges::pop_heap(out, better);
        out.pop_back();
      }
      out.push_back({score, beam, static_cast<TokenId>(token)});
      std::ranges::push_heap(out, better);
    }
  std::ranges::sort(out, better);
  return out;
}

void Beams::advance(std::span<const std::span<float>> rows,
                    const std::function<bool(std::span<const TokenId>)>& stops) {
  check(rows.size() == running_.size() && !done_, "beams: ", rows.size(), " rows for ", running_.size(), " beams");
  const std::vector<Candidate> considered = candidates(rows);
  const bool full = complete_.size() == width_ && config_.early_stopping == EarlyStopping::yes;
  std::vector<Beam> next;
  bool all_stop = true;
  for (size_t i = 0; i < considered.size(); ++i) {
    const auto& [score, parent, token] = considered[i];
    Beam beam = running_[parent];
    beam.tokens.push_back(token);
    beam.score = score;
    beam.parents.push_back(int64_t(parent));
    const bool ends = std::ranges::find(config_.eos_token_id, token) != config_.eos_token_id.end() ||
                      int64_t(beam.tokens.size()) >= max_length_ || stops(beam.tokens);
    all_stop &= ends;
    if (!ends)
      next.push_back(std::move(beam));
    else if (i < width_ && !full)  // the others only ensure that enough candidates continue
      complete(std::move(beam));
  }
  std::ranges::stable_sort(next, std::ranges::greater{}, &Beam::score);
  if (next.size() > width_) next.resize(width_);
  if (!all_stop) running_ = std::move(next);
  done_ = all_stop || !can_improve() || (complete_.size() == width_ && config_.early_stopping == EarlyStopping::yes);
}

void Beams::complete(Beam beam) {
  beam.score /= divisor(int64_t(beam.tokens.size() - prompt_));
  const auto at = std::ranges::upper_bound(complete_, beam.score, std::ranges::greater{}, &Beam::score);
  complete_.insert(at, std::move(beam));
  if (complete_.size() > width_) complete_.pop_back();
}

float Beams::divisor(int64_t length) const { return float(std::pow(double(length), config_.length_penalty)); }

// Whether the best running beam could still become better than the worst complete one: judged by its present score,
// unless early_stopping is "never".
bool Beams::can_improve() const {
  if (complete_.size() < width_) return true;
  const auto prompt = int64_t(prompt_);
  const bool longest = config_.early_stopping == EarlyStopping::never && config_.length_penalty > 0;
  const int64_t length = longest ? max_length_ - prompt : int64_t(running_[0].tokens.size()) - prompt;
  return running_[0].score / divisor(length) > complete_.back().score;
}

std::vector<Beam> Beams::best(size_t count) const {
  std::vector<Beam> out = complete_.empty() ? running_ : complete_;
  if (out.size() > count) out.resize(count);
  return out;
}

}  // namespace easydel::generation
