#include "easydel/generation/processors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace easydel::generation {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool in(TokenId id, std::span<const float> scores) { return id >= 0 && static_cast<size_t>(id) < scores.size(); }

void forbid(std::span<const int64_t> ids, std::span<float> scores) {
  for (const int64_t id : ids)
    if (id >= 0 && static_cast<size_t>(id) < scores.size()) scores[static_cast<size_t>(id)] = kNever;
}

class PresenceAndFrequency final : public Processor {
 public:
  PresenceAndFrequency(double presence, double frequency)
      : presence_(static_cast<float>(presence)), frequency_(static_cast<float>(frequency)) {}
  void apply(const History& history, std::span<float> scores) const override {
    std::unordered_map<TokenId, int> counts;
    for (const TokenId id : history.generated()) ++counts[id];
    for (const auto& [id, count] : counts)
      if (in(id, scores)) scores[static_cast<size_t>(id)] -= presence_ + frequency_ * static_cast<float>(count);
  }

 private:
  float presence_, frequency_;
};

class RepetitionPenalty final : public Processor {  // arXiv:1909.05858
 public:
  explicit RepetitionPenalty(double penalty) : penalty_(static_cast<float>(penalty)) {}
  void apply(const History& history, std::span<float> scores) const override {
    const std::unordered_set<TokenId> seen(history.tokens.begin(), history.tokens.end());
    for (const TokenId id : seen) {
      if (!in(id, scores)) continue;
      float& score = scores[static_cast<size_t>(id)];
      score = score < 0 ? score * penalty_ : score / penalty_;
    }
  }

 private:
  float penalty_;
};

class NoRepeatNgram final : public Processor {
 public:
  explicit NoRepeatNgram(int64_t size) : size_(static_cast<size_t>(size)) {}
  void apply(const History& history, std::span<float> scores) const override {
    const auto tokens = history.tokens;
    if (tokens.size() + 1 < size_) return;
    const auto tail = tokens.last(size_ - 1);
    for (size_t i = 0; i + size_ <= tokens.size(); ++i)
      if (std::ranges::equal(tokens.subspan(i, size_ - 1), tail) && in(tokens[i + size_ - 1], scores))
        scores[static_cast<size_t>(tokens[i + size_ - 1])] = kNever;
  }

 private:
  size_t size_;
};

class BadWords final : public Processor {
 public:
  BadWords(std::vector<std::vector<int64_t>> words, std::span<const int64_t> ends) : words_(std::move(words)) {
    // The end of the text is nobody's bad word.
    std::erase_if(words_, [&](const auto& word) {
      return word.empty() || (word.size() == 1 && std::ranges::find(ends, word[0]) != ends.end());
    });
  }
  void apply(const History& history, std::span<float> scores) const override {
    for (const auto& word : words_) {
      const std::span<const int64_t> start(word.data(), word.size() - 1);
      if (history.tokens.size() < start.size()) continue;
      if (std::ranges::equal(history.tokens.last(start.size()), start)) forbid({&word.back(), 1}, scores);
    }
  }

 private:
  std::vector<std::vector<int64_t>> words_;
};

class NoEndBefore final : public Processor {
 public:
  NoEndBefore(int64_t tokens, bool count_prompt, std::vector<int64_t> ends)
      : tokens_(static_cast<size_t>(tokens)), count_prompt_(count_prompt), ends_(std::move(ends)) {}
  void apply(const History& history, std::span<float> scores) const override {
    const size_t length = count_prompt_ ? history.tokens.size() : history.generated().size();
    if (length < tokens_) forbid(ends_, scores);
  }

 private:
  size_t tokens_;
  bool count_prompt_;
  std::vector<int64_t> ends_;
};

class Suppress final : public Processor {
 public:
  Suppress(std::vector<int64_t> ids, bool only_first) : ids_(std::move(ids)), only_first_(only_first) {}
  void apply(const History& history, std::span<float> scores) const override {
    if (!only_first_ || history.generated().empty()) forbid(ids_, scores);
  }

 private:
  std::vector<int64_t> ids_;
  bool only_first_;
};

class Temperature final : public Processor {
 public:
  explicit Temperature(double temperature) : temperature_(static_cast<float>(temperature)) {}
  void apply(const History&, std::span<float> scores) const override {
    for (float& score : scores) score /= temperature_;
  }

 private:
  float temperature_;
};

std::vector<float> softmax(std::span<const float> scores) {
  const float top = *std::ranges::max_element(scores);
  std::vector<float> out(scores.size());
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) sum += out[i] = std::exp(scores[i] - top);
  for (float& p : out) p = static_cast<float>(p / sum);
  return out;
}

// Tokens by descending score, equal ones in the order of their ids, put in order only where it is asked for: a
// vocabulary is long and what is kept of it short.
class Ranking {
 public:
  explicit Ranking(std::span<const float> scores) : scores_(scores), order_(scores.size()) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint32_t>(i);
  }
  uint32_t operator[](size_t rank) const { return order_[rank]; }
  auto before() const {
    return [this](uint32_t a, uint32_t b) { return scores_[a] != scores_[b] ? scores_[a] > scores_[b] : a < b; };
  }
  // Of ranks [begin, end): those below `middle` come before it.
  void part(size_t begin, size_t middle, size_t end) {
    if (begin < middle && middle < end) std::nth_element(at(begin), at(middle), at(end), before());
  }
  void sort(size_t begin, size_t end) { std::sort(at(begin), at(end), before()); }

 private:
  std::vector<uint32_t>::iterator at(size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); }

  std::span<const float> scores_;
  std::vector<uint32_t> order_;
};

class TopK final : public Processor {
 public:
  TopK(int64_t k, int64_t keep) : k_(static_cast<size_t>(std::max(k, keep))) {}
  void apply(const History&, std::span<float> scores) const override {
    if (k_ >= scores.size()) return;
    std::vector<float> sorted(scores.begin(), scores.end());
    std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(k_) - 1, std::ranges::greater{});
    const float threshold = sorted[k_ - 1];  // its equals stay, as in the original
    for (float& score : scores)
      if (score < threshold) score = kNever;
  }

 private:
  size_t k_;
};

class TopP final : public Processor {  // arXiv:1904.09751
 public:
  TopP(double p, int64_t keep) : p_(p), keep_(static_cast<size_t>(keep)) {}
  void apply(const History&, std::span<float> scores) const override {
    const size_t count = scores.size();
    if (keep_ >= count) return;
    const std::vector<float> probability = softmax(scores);
    // From the unlikeliest upwards: out go those whose summed probability stays within 1 - p. Halves are told from one
    // another until the last to go is among a few.
    const auto within = [&](double sum) { return static_cast<float>(sum) <= static_cast<float>(1 - p_); };
    Ranking order(scores);
    order.part(0, keep_, count);
    size_t first = keep_, end = count;  // of the ranks from `end` on all go, of those before `first` none
    double sum = 0;
    constexpr size_t few = 64;
    while (end - first > few) {
      const size_t middle = first + (end - first) / 2;
      order.part(first, middle, end);
      double lower = 0;
      for (size_t i = middle; i < end; ++i) lower += probability[order[i]];
      if (within(sum + lower))
        sum += lower, end = middle;
      else
        first = middle;
    }
    order.sort(first, end);
    while (end > first && within(sum + probability[order[end - 1]])) sum += probability[order[--end]];
    for (size_t i = end; i < count; ++i) scores[order[i]] = kNever;
  }

 private:
  double p_;
  size_t keep_;
};

class MinP final : public Processor {  // arXiv:2407.01082
 public:
  MinP(double p, int64_t keep) : p_(static_cast<float>(p)), keep_(static_cast<size_t>(keep)) {}
  void apply(const History&, std::span<float> scores) const override {
    const std::vector<float> probability = softmax(scores);
    Ranking order(scores);
    order.part(0, keep_, scores.size());
    const float threshold = p_ * *std::ranges::max_element(probability);
    for (size_t i = keep_; i < scores.size(); ++i)
      if (probability[order[i]] < threshold) scores[order[i]] = kNever;
  }

 private:
  float p_;
  size_t keep_;
};

class Typical final : public Processor {
 public:
  Typical(double mass, int64_t keep) : mass_(mass), keep_(static_cast<size_t>(keep)) {}
  void apply(const History&, std::span<float> scores) const override {
    const std::vector<float> probability = softmax(scores);
    double entropy = 0;
    for (const float p : probability)
      if (p > 0) entropy -= p * std::log(p);
    std::vector<float> distance(scores.size());
    for (size_t i = 0; i < scores.size(); ++i)
      distance[i] = static_cast<float>(std::abs(-std::log(probability[i]) - entropy));
    std::vector<uint32_t> order(scores.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
    std::ranges::stable_sort(order, std::ranges::less{}, [&](uint32_t i) { return distance[i]; });
    double sum = 0;
    size_t last = 0;
    for (; last < order.size(); ++last)
      if ((sum += probability[order[last]]) >= mass_) break;
    const float threshold = distance[order[std::min(last, order.size() - 1)]];
    for (size_t i = keep_; i < order.size(); ++i)
      if (distance[order[i]] > threshold) scores[order[i]] = kNever;
  }

 private:
  double mass_;
  size_t keep_;
};

template <class P, class... Arguments>
void add(Chain& chain, bool wanted, Arguments&&... arguments) {
  if (wanted) chain.push_back(std::make_unique<const P>(std::forward<Arguments>(arguments)...));
}

}  // namespace

Chain make_processors(const SamplingConfig& c) {
  const std::vector<int64_t> ends(c.eos_token_id.begin(), c.eos_token_id.end());
  Chain chain;
  add<PresenceAndFrequency>(chain, c.presence_penalty != 0 || c.frequency_penalty != 0, c.presence_penalty, c.frequency_penalty);
  add<RepetitionPenalty>(chain, c.repetition_penalty != 1, c.repetition_penalty);
  add<NoRepeatNgram>(chain, c.no_repeat_ngram_size > 0, c.no_repeat_ngram_size);
  add<BadWords>(chain, !c.bad_words_ids.empty(), c.bad_words_ids, ends);
  add<NoEndBefore>(chain, c.min_length > 0 && !ends.empty(), c.min_length, true, ends);
  add<NoEndBefore>(chain, c.min_new_tokens > 0 && !ends.empty(), c.min_new_tokens, false, ends);
  add<Suppress>(chain, !c.suppress_tokens.empty(), c.suppress_tokens, false);
  add<Suppress>(chain, !c.begin_suppress_tokens.empty(), c.begin_suppress_tokens, true);
  return chain;
}

Chain make_warpers(const SamplingConfig& c, int64_t keep) {
  Chain chain;
  add<Temperature>(chain, c.temperature != 1 && c.temperature > 0, c.temperature);
  add<TopK>(chain, c.top_k > 0, c.top_k, keep);
  add<TopP>(chain, c.top_p < 1, c.top_p, keep);
  add<MinP>(chain, c.min_p > 0, c.min_p, keep);
  add<Typical>(chain, c.typical_p < 1, c.typical_p, keep);
  return chain;
}

}  // namespace easydel::generation
