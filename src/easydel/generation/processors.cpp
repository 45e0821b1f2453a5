#include "easydel/generation/processors.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::generation {
namespace {

using Ids = std::vector<int64_t>;

bool in(int64_t id, std::span<const float> scores) { return id >= 0 && size_t(id) < scores.size(); }

void forbid(std::span<const int64_t> ids, std::span<float> scores) {
  for (const int64_t id : ids)
    if (in(id, scores)) scores[size_t(id)] = never_drawn;
}

// Allows only these tokens, with equal scores.
void force(std::span<const int64_t> ids, std::span<float> scores) {
  std::ranges::fill(scores, never_drawn);
  for (const int64_t id : ids)
    if (in(id, scores)) scores[size_t(id)] = 0;
}

bool ends_with(std::span<const TokenId> tokens, std::span<const int64_t> end) {
  return tokens.size() >= end.size() && std::ranges::equal(tokens.last(end.size()), end);
}

class SequenceBiases final : public Processor {
 public:
  explicit SequenceBiases(const std::vector<SequenceBias>& entries) {
    for (const SequenceBias& entry : entries) {
      const auto same = std::ranges::find(entries_, entry.tokens, &SequenceBias::tokens);
      same == entries_.end() ? entries_.push_back(entry) : void(same->bias = entry.bias);
    }
    std::ranges::stable_partition(entries_, [](const SequenceBias& entry) { return entry.tokens.size() == 1; });
  }
  void apply(const History& history, std::span<float> scores) const override {
    std::unordered_map<int64_t, float> sums;
    for (const auto& [tokens, bias] : entries_)
      if (in(tokens.back(), scores) && ends_with(history.tokens, std::span(tokens).first(tokens.size() - 1)))
        sums[tokens.back()] += float(bias);
    for (const auto& [id, sum] : sums) scores[size_t(id)] += sum;
  }

 private:
  std::vector<SequenceBias> entries_;
};

std::vector<SequenceBias> bad_words(const std::vector<Ids>& words, std::span<const int64_t> ends) {
  std::vector<SequenceBias> out;
  for (const Ids& word : words)  // an end token is never a bad word
    if (!word.empty() && !(word.size() == 1 && std::ranges::find(ends, word[0]) != ends.end()))
      out.push_back({word, never_drawn});
  return out;
}

class PresenceAndFrequency final : public Processor {
 public:
  PresenceAndFrequency(double presence, double frequency) : presence_(float(presence)), frequency_(float(frequency)) {}
  void apply(const History& history, std::span<float> scores) const override {
    std::unordered_map<TokenId, int> counts;
    for (const TokenId id : history.generated()) ++counts[id];
    for (const auto& [id, count] : counts)
      if (in(id, scores)) scores[size_t(id)] -= presence_ + frequency_ * float(count);
  }

 private:
  float presence_, frequency_;
};

void penalize(const std::unordered_set<TokenId>& ids, float penalty, std::span<float> scores) {
  for (const TokenId id : ids) {
    if (!in(id, scores)) continue;
    float& score = scores[size_t(id)];
    score = score < 0 ? score * penalty : score / penalty;
  }
}

class RepetitionPenalty final : public Processor {  // arXiv:1909.05858
 public:
  explicit RepetitionPenalty(double penalty) : penalty_(float(penalty)) {}
  void apply(const History& history, std::span<float> scores) const override {
    penalize({history.tokens.begin(), history.tokens.end()}, penalty_, scores);
  }

 private:
  float penalty_;
};

class PromptPenalty final : public Processor {
 public:
  PromptPenalty(double penalty, std::span<const TokenId> prompt)
      : penalty_(float(1 / penalty)), prompt_(prompt.begin(), prompt.end()) {}
  void apply(const History&, std::span<float> scores) const override { penalize(prompt_, penalty_, scores); }

 private:
  float penalty_;
  std::unordered_set<TokenId> prompt_;
};

// No sequence of `size` tokens that occurs in `source` may occur again; without a source: in the sequence itself.
class NoRepeatNgram final : public Processor {
 public:
  explicit NoRepeatNgram(int64_t size, std::optional<std::vector<TokenId>> source = std::nullopt)
      : size_(size_t(size)), source_(std::move(source)) {}
  void apply(const History& history, std::span<float> scores) const override {
    const std::span<const TokenId> source = source_ ? std::span(*source_) : history.tokens;
    if (history.tokens.size() + 1 < size_) return;
    const auto tail = history.tokens.last(size_ - 1);
    for (size_t i = 0; i + size_ <= source.size(); ++i)
      if (std::ranges::equal(source.subspan(i, size_ - 1), tail) && in(source[i + size_ - 1], scores))
        scores[size_t(source[i + size_ - 1])] = never_drawn;
  }

 private:
  size_t size_;
  std::optional<std::vector<TokenId>> source_;
};

class NoEndBefore final : public Processor {
 public:
  NoEndBefore(int64_t tokens, bool count_prompt, Ids ends)
      : tokens_(size_t(tokens)), count_prompt_(count_prompt), ends_(std::move(ends)) {}
  void apply(const History& history, std::span<float> scores) const override {
    const size_t length = count_prompt_ ? history.tokens.size() : history.generated().size();
    if (length < tokens_) forbid(ends_, scores);
  }

 private:
  size_t tokens_;
  bool count_prompt_;
  Ids ends_;
};

class OnlyAllowed final : public Processor {  // arXiv:2010.00904
 public:
  explicit OnlyAllowed(AllowedTokens allowed) : allowed_(std::move(allowed)) {}
  void apply(const History& history, std::span<float> scores) const override {
    const std::span<const uint64_t> mask = allowed_(history.tokens);
    const auto has = [&](size_t id) { return id / 64 < mask.size() && (mask[id / 64] >> (id % 64) & 1); };
    bool any = false, possible = false;
    for (size_t id = 0; id < scores.size() && !possible; ++id)
      if (has(id)) any = true, possible = scores[id] != never_drawn;
    if (!any)
      refuse("generation", str("nothing is allowed to follow ", history.tokens.size(), " tokens"),
             "the caller's function names at least one token");
    for (size_t id = 0; id < scores.size(); ++id)
      if (!has(id))
        scores[id] = never_drawn;
      else if (!possible)
        scores[id] = 0;
  }

 private:
  AllowedTokens allowed_;
};

class ForcedStart final : public Processor {
 public:
  explicit ForcedStart(int64_t id) : id_(id) {}
  void apply(const History& history, std::span<float> scores) const override {
    if (history.tokens.size() == 1) force({&id_, 1}, scores);
  }

 private:
  int64_t id_;
};

class ForcedEnd final : public Processor {
 public:
  ForcedEnd(int64_t max_length, Ids ids) : max_length_(size_t(max_length)), ids_(std::move(ids)) {}
  void apply(const History& history, std::span<float> scores) const override {
    if (history.tokens.size() + 1 == max_length_) force(ids_, scores);
  }

 private:
  size_t max_length_;
  Ids ids_;
};

class OnlyFinite final : public Processor {
 public:
  void apply(const History&, std::span<float> scores) const override {
    constexpr float most = std::numeric_limits<float>::max();
    for (float& score : scores) score = std::isnan(score) ? 0 : std::clamp(score, -most, most);
  }
};

class GrowingEnd final : public Processor {
 public:
  GrowingEnd(std::array<double, 2> start_and_factor, Ids ends)
      : start_(size_t(start_and_factor[0])), factor_(start_and_factor[1]), ends_(std::move(ends)) {}
  void apply(const History& history, std::span<float> scores) const override {
    const size_t length = history.generated().size();
    if (length <= start_) return;
    const auto growth = float(std::pow(factor_, double(length - start_)) - 1);
    for (const int64_t id : ends_)
      if (in(id, scores) && std::isfinite(scores[size_t(id)]))
        scores[size_t(id)] += std::abs(scores[size_t(id)]) * growth;
  }

 private:
  size_t start_;
  double factor_;
  Ids ends_;
};

class Suppress final : public Processor {
 public:
  // `only_at`: applies only to the generated token with this index.
  explicit Suppress(Ids ids, std::optional<size_t> only_at = std::nullopt) : ids_(std::move(ids)), only_at_(only_at) {}
  void apply(const History& history, std::span<float> scores) const override {
    if (!only_at_ || history.generated().size() == *only_at_) forbid(ids_, scores);
  }

 private:
  Ids ids_;
  std::optional<size_t> only_at_;
};

class Normalization final : public Processor {
 public:
  void apply(const History&, std::span<float> scores) const override { log_softmax(scores); }
};

}  // namespace

void log_softmax(std::span<float> scores) {
  const float top = *std::ranges::max_element(scores);
  if (top == never_drawn) return;
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - top);
  const auto rest = float(std::log(sum));
  for (float& score : scores) score = score - top - rest;
}

void guide(std::span<float> scores, std::span<const float> negative, double scale) {
  const auto factor = float(scale);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = factor * (scores[i] - negative[i]) + negative[i];
}

Chain make_processors(const GenerationConfig& c, const Setting& setting) {
  const Ids ends(c.eos_token_id);
  const std::vector<SequenceBias> bad = bad_words(c.bad_words_ids, ends);
  Chain chain;
  add<SequenceBiases>(chain, !c.sequence_bias.empty(), c.sequence_bias);
  add<PromptPenalty>(chain, c.encoder_repetition_penalty != 1, c.encoder_repetition_penalty, setting.prompt);
  add<PresenceAndFrequency>(chain, c.presence_penalty != 0 || c.frequency_penalty != 0, c.presence_penalty,
                            c.frequency_penalty);
  add<RepetitionPenalty>(chain, c.repetition_penalty != 1, c.repetition_penalty);
  add<NoRepeatNgram>(chain, c.no_repeat_ngram_size > 0, c.no_repeat_ngram_size);
  add<NoRepeatNgram>(chain, c.encoder_no_repeat_ngram_size > 0, c.encoder_no_repeat_ngram_size, setting.prompt);
  add<SequenceBiases>(chain, !bad.empty(), bad);
  if (!ends.empty() && c.min_new_tokens > 0)
    add<NoEndBefore>(chain, true, c.min_new_tokens, false, ends);
  else
    add<NoEndBefore>(chain, !ends.empty() && c.min_length > 0, c.min_length, true, ends);
  add<OnlyAllowed>(chain, setting.allowed != nullptr, setting.allowed);
  if (c.forced_bos_token_id) add<ForcedStart>(chain, true, *c.forced_bos_token_id);
  add<ForcedEnd>(chain, !c.forced_eos_token_id.empty(), setting.max_length, Ids(c.forced_eos_token_id));
  add<OnlyFinite>(chain, c.remove_invalid_values);
  if (c.exponential_decay_length_penalty)
    add<GrowingEnd>(chain, !ends.empty(), *c.exponential_decay_length_penalty, ends);
  add<Suppress>(chain, !c.suppress_tokens.empty(), c.suppress_tokens);
  const bool forced_start = c.forced_bos_token_id && setting.prompt.size() == 1;
  add<Suppress>(chain, !c.begin_suppress_tokens.empty(), c.begin_suppress_tokens, forced_start ? 1 : 0);
  return chain;
}

Chain make_chain(const GenerationConfig& c, const Setting& setting) {
  Chain chain = make_processors(c, setting);
  if (!c.greedy()) {
    // A beam continues with another candidate where the best one ends.
    const int64_t needed = c.num_beams == 1 ? 1 : std::max<int64_t>(2, 1 + int64_t(c.eos_token_id.size()));
    for (auto& warper : make_warpers(c, setting.keep > 0 ? setting.keep : needed)) chain.push_back(std::move(warper));
  }
  if (c.watermarking_config) chain.push_back(make_watermark(*c.watermarking_config, setting.vocabulary));
  add<Normalization>(chain, c.renormalize_logits);
  return chain;
}

}  // namespace easydel::generation
