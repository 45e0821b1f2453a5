// Transformations of a row of scores before a token is chosen, in transformers' order: processors always, warpers only
// before sampling, then the watermark and the last normalization. Numerics: transformers/generation/logits_process.py.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "easydel/generation/generation_config.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::generation {

using text::TokenId;

// The score of a token that must not come.
constexpr float never_drawn = -std::numeric_limits<float>::infinity();

// One sequence so far: the prompt and the generated tokens.
struct History {
  std::span<const TokenId> tokens;
  size_t prompt = 0;  // number of prompt tokens among them
  std::span<const TokenId> generated() const { return tokens.subspan(prompt); }
};

class Processor {
 public:
  virtual ~Processor() = default;
  // `scores` [vocabulary] is changed in place; a token that must not come gets never_drawn. const and thread-safe.
  virtual void apply(const History& history, std::span<float> scores) const = 0;
};
using Chain = std::vector<std::unique_ptr<const Processor>>;

inline void apply(const Chain& chain, const History& history, std::span<float> scores) {
  for (const auto& step : chain) step->apply(history, scores);
}

// The tokens that may follow `tokens`, at least one: a constraint of the caller's. Bit id % 64 of word id / 64 is a
// token's; tokens beyond the last word may not follow. The words stay as they are until the next call.
using AllowedTokens = std::function<std::span<const uint64_t>(std::span<const TokenId> tokens)>;

// What the processors of one request need in addition to its config.
struct Setting {
  std::vector<TokenId> prompt = {};  // encoder_repetition_penalty and encoder_no_repeat_ngram_size look at it
  int64_t max_length = 0;            // tokens at most, prompt counted; forced_eos_token_id looks at it
  int64_t vocabulary = 0;            // the watermark is drawn over it
  AllowedTokens allowed = {};
  int64_t keep = 0;  // tokens that a warper always leaves; 0: as the search needs
};

// The processors for a search with this config, without those that would do nothing.
Chain make_chain(const GenerationConfig& config, const Setting& setting = {});

// Its parts.
Chain make_processors(const GenerationConfig& config, const Setting& setting);
Chain make_warpers(const GenerationConfig& config, int64_t keep);
std::unique_ptr<const Processor> make_watermark(const WatermarkingConfig& config, int64_t vocabulary);

// Turns scores [n] into log-probabilities. A row with only never_drawn stays as it is.
void log_softmax(std::span<float> scores);

// Classifier-free guidance: moves the prompt's `scores` away from those of the negative prompt by `scale`; both
// [vocabulary].
void guide(std::span<float> scores, std::span<const float> negative, double scale);

// Adds a processor if the config requires it.
template <class P, class... Arguments>
void add(Chain& chain, bool wanted, Arguments&&... arguments) {
  if (wanted) chain.push_back(std::make_unique<const P>(std::forward<Arguments>(arguments)...));
}

}  // namespace easydel::generation
