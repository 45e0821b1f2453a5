// What is done to a row of scores before a token is chosen, in Hugging Face's order: processors always, warpers only
// before a draw. Numerics: transformers/generation/logits_process.py.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "easydel/generation/sampling_config.h"
#include "easydel/text/tokenizer.h"

namespace easydel::generation {

using text::TokenId;

// One sequence so far: the prompt, then what was generated.
struct History {
  std::span<const TokenId> tokens;
  size_t prompt = 0;  // how many of them are the prompt
  std::span<const TokenId> generated() const { return tokens.subspan(prompt); }
};

class Processor {
 public:
  virtual ~Processor() = default;
  // `scores` [vocabulary] is changed in place; a token that must not come gets -infinity. const and thread-safe.
  virtual void apply(const History& history, std::span<float> scores) const = 0;
};
using Chain = std::vector<std::unique_ptr<const Processor>>;

// Only those that would do something; `keep` is the number of tokens that a warper always leaves.
Chain make_processors(const SamplingConfig& config);
Chain make_warpers(const SamplingConfig& config, int64_t keep = 1);

inline void apply(const Chain& chain, const History& history, std::span<float> scores) {
  for (const auto& step : chain) step->apply(history, scores);
}

}  // namespace easydel::generation
