// Processors before sampling: temperature, and cut-offs of unlikely tokens. None of them sorts the whole vocabulary:
// each looks at the tokens that are still possible, and sorts only near its threshold.
#include <algorithm>
#include <cmath>
#include <utility>

#include "easydel/generation/processors.h"

namespace easydel::generation {
namespace {

class Temperature final : public Processor {
 public:
  explicit Temperature(double temperature) : temperature_(float(temperature)) {}
  void apply(const History&, std::span<float> scores) const override {
    for (float& score : scores) score /= temperature_;
  }

 private:
  float temperature_;
};

// The tokens that are still possible: their ids, and (by the same index) their scores and probabilities.
struct Possible {
  explicit Possible(std::span<const float> all) {
    for (size_t id = 0; id < all.size(); ++id)
      if (all[id] != never_drawn) ids.push_back(uint32_t(id)), scores.push_back(all[id]);
  }
  size_t size() const { return ids.size(); }
  void weigh() {
    top = *std::ranges::max_element(scores);
    probability.resize(scores.size());
    sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) sum += probability[i] = std::exp(scores[i] - top);
    for (float& p : probability) p = float(p / sum);
  }
  float log_probability(size_t i) const { return scores[i] - top - float(std::log(sum)); }
  double entropy() const {
    double out = 0;
    for (size_t i = 0; i < scores.size(); ++i)
      if (probability[i] > 0) out -= double(probability[i] * log_probability(i));
    return out;
  }

  std::vector<uint32_t> ids;
  std::vector<float> scores, probability;
  float top = 0;
  double sum = 1;
};

// Indices by descending score, ties by id; sorted only as far as needed.
class Ranking {
 public:
  explicit Ranking(std::span<const float> scores) : scores_(scores), order_(scores.size()) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = uint32_t(i);
  }
  uint32_t operator[](size_t rank) const { return order_[rank]; }
  auto before() const {
    return [this](uint32_t a, uint32_t b) { return scores_[a] != scores_[b] ? scores_[a] > scores_[b] : a < b; };
  }
  // Partitions ranks [begin, end) so that those below `middle` come before it.
  void part(size_t begin, size_t middle, size_t end) {
    if (begin < middle && middle < end) std::nth_element(at(begin), at(middle), at(end), before());
  }
  void sort(size_t begin, size_t end) { std::sort(at(begin), at(end), before()); }

 private:
  std::vector<uint32_t>::iterator at(size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); }

  std::span<const float> scores_;
  std::vector<uint32_t> order_;
};

// The k-th greatest score, 1 <= k <= their number.
float greatest(std::span<const float> scores, size_t k) {
  constexpr size_t few = 1024;
  std::vector<float> best(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(k <= few ? k : scores.size()));
  if (k > few) {
    std::ranges::nth_element(best, best.begin() + static_cast<std::ptrdiff_t>(k) - 1, std::ranges::greater{});
    return best[k - 1];
  }
  // A heap of the greatest ones so far, which few of a whole vocabulary enter.
  std::ranges::make_heap(best, std::ranges::greater{});
  for (const float score : scores.subspan(k)) {
    if (!(score > best.front())) continue;
    std::ranges::pop_heap(best, std::ranges::greater{});
    best.back() = score;
    std::ranges::push_heap(best, std::ranges::greater{});
  }
  return best.front();
}

class TopH final : public Processor {  // arXiv:2509.02510
 public:
  explicit TopH(double share) : share_(share) {}
  void apply(const History&, std::span<float> scores) const override {
    constexpr size_t most = 100;  // as in the original
    Possible all(scores);
    if (all.size() == 0) return;
    Ranking order(all.scores);
    const size_t count = std::min(most, all.size());
    order.part(0, count, all.size());
    order.sort(0, count);
    Possible best = all;
    best.ids.clear(), best.scores.clear();
    for (size_t i = 0; i < count; ++i)
      best.ids.push_back(all.ids[order[i]]), best.scores.push_back(all.scores[order[i]]);
    best.weigh();
    const auto budget = float(best.entropy() * share_);
    float sum = 0;
    std::ranges::fill(scores, never_drawn);
    for (size_t i = 0; i < count; ++i) {
      sum -= best.probability[i] * std::log(best.probability[i]);
      if (i > 0 && !(sum <= budget)) break;
      scores[best.ids[i]] = best.scores[i];
    }
  }

 private:
  double share_;
};

class TopK final : public Processor {
 public:
  TopK(int64_t k, int64_t keep) : k_(size_t(std::max(k, keep))) {}
  void apply(const History&, std::span<float> scores) const override {
    if (k_ >= scores.size()) return;
    // never_drawn if no more are possible. Equal scores stay, as in the original.
    const float threshold = greatest(scores, k_);
    for (float& score : scores)
      if (score < threshold) score = never_drawn;
  }

 private:
  size_t k_;
};

class TopP final : public Processor {  // arXiv:1904.09751
 public:
  TopP(double p, int64_t keep) : p_(p), keep_(size_t(keep)) {}
  void apply(const History&, std::span<float> scores) const override {
    Possible all(scores);
    const size_t count = all.size();
    if (keep_ >= count) return;
    all.weigh();
    // Starting with the least likely tokens, removes those whose cumulative probability is at most 1 - p. Halves are
    // partitioned until the last one to remove is among a few.
    const auto within = [&](double sum) { return float(sum) <= float(1 - p_); };
    Ranking order(all.scores);
    order.part(0, keep_, count);
    size_t first = keep_, end = count;  // ranks from `end` on are removed, ranks before `first` are kept
    double sum = 0;
    constexpr size_t few = 64;
    while (end - first > few) {
      const size_t middle = first + (end - first) / 2;
      order.part(first, middle, end);
      double lower = 0;
      for (size_t i = middle; i < end; ++i) lower += all.probability[order[i]];
      if (within(sum + lower))
        sum += lower, end = middle;
      else
        first = middle;
    }
    order.sort(first, end);
    while (end > first && within(sum + all.probability[order[end - 1]])) sum += all.probability[order[--end]];
    for (size_t i = end; i < count; ++i) scores[all.ids[order[i]]] = never_drawn;
  }

 private:
  double p_;
  size_t keep_;
};

class MinP final : public Processor {  // arXiv:2407.01082
 public:
  MinP(double p, int64_t keep) : p_(float(p)), keep_(size_t(keep)) {}
  void apply(const History&, std::span<float> scores) const override {
    Possible all(scores);
    if (keep_ >= all.size()) return;
    all.weigh();
    Ranking order(all.scores);
    order.part(0, keep_, all.size());
    const float threshold = p_ * *std::ranges::max_element(all.probability);
    for (size_t i = keep_; i < all.size(); ++i)
      if (all.probability[order[i]] < threshold) scores[all.ids[order[i]]] = never_drawn;
  }

 private:
  float p_;
  size_t keep_;
};

class Typical final : public Processor {
 public:
  Typical(double mass, int64_t keep) : mass_(mass), keep_(size_t(keep)) {}
  void apply(const History&, std::span<float> scores) const override {
    Possible all(scores);
    if (keep_ >= all.size()) return;
    all.weigh();
    const auto entropy = float(all.entropy());
    std::vector<float> nearness(all.size());  // greatest: the token is as likely as the entropy predicts
    for (size_t i = 0; i < all.size(); ++i) nearness[i] = -std::abs(-all.log_probability(i) - entropy);
    Ranking order(nearness);
    // Ranks before `first` are needed to reach the mass; ranks from `end` on are not.
    size_t first = 0, end = all.size();
    double sum = 0;
    constexpr size_t few = 64;
    while (end - first > few) {
      const size_t middle = first + (end - first) / 2;
      order.part(first, middle, end);
      double upper = 0;
      for (size_t i = first; i < middle; ++i) upper += all.probability[order[i]];
      if (sum + upper < mass_)
        sum += upper, first = middle;
      else
        end = middle;
    }
    order.sort(first, end);
    size_t last = first;
    while (last + 1 < end && (sum += all.probability[order[last]]) < mass_) ++last;
    const float threshold = nearness[order[last]];
    order.part(0, keep_, all.size());
    for (size_t i = keep_; i < all.size(); ++i)
      if (nearness[order[i]] < threshold) scores[all.ids[order[i]]] = never_drawn;
  }

 private:
  double mass_;
  size_t keep_;
};

// Removes tokens below a probability, except the `keep` likeliest (arXiv:2210.15191): epsilon, or with `by_entropy`
// eta, whose threshold falls with the entropy.
class Cutoff final : public Processor {
 public:
  Cutoff(double epsilon, bool by_entropy, int64_t keep)
      : epsilon_(epsilon), by_entropy_(by_entropy), keep_(size_t(keep)) {}
  void apply(const History&, std::span<float> scores) const override {
    Possible all(scores);
    if (keep_ >= all.size()) return;
    all.weigh();
    double bound = epsilon_;
    if (by_entropy_) bound = std::min(epsilon_, std::sqrt(epsilon_) * std::exp(-all.entropy()));
    const float kept = greatest(all.scores, keep_);
    for (size_t i = 0; i < all.size(); ++i)
      if (all.probability[i] < float(bound) && all.scores[i] < kept) scores[all.ids[i]] = never_drawn;
  }

 private:
  double epsilon_;
  bool by_entropy_;
  size_t keep_;
};

}  // namespace

Chain make_warpers(const GenerationConfig& c, int64_t keep) {
  const auto inside = [](double share) { return share > 0 && share < 1; };
  Chain chain;
  add<Temperature>(chain, c.temperature != 1 && c.temperature > 0, c.temperature);
  if (c.top_h) add<TopH>(chain, true, *c.top_h);
  add<TopK>(chain, c.top_k > 0, c.top_k, keep);
  add<TopP>(chain, c.top_p < 1, c.top_p, keep);
  add<MinP>(chain, c.min_p > 0, c.min_p, keep);
  add<Typical>(chain, inside(c.typical_p), c.typical_p, keep);
  add<Cutoff>(chain, inside(c.epsilon_cutoff), c.epsilon_cutoff, false, keep);
  add<Cutoff>(chain, inside(c.eta_cutoff), c.eta_cutoff, true, keep);
  return chain;
}

}  // namespace easydel::generation
