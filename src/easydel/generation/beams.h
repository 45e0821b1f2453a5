// The arithmetic of beam search and beam sampling, without a model: which sequences continue with which tokens, which
// are complete, and when none can improve. Follows transformers/generation/utils.py (_beam_search) for one prompt.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "easydel/generation/generation_config.h"
#include "easydel/generation/processors.h"

namespace easydel::generation {

struct Beam {
  std::vector<TokenId> tokens;   // the prompt, then the chosen tokens
  float score = 0;               // running: the sum of log-probabilities; complete: that / length ^ length_penalty
  std::vector<int64_t> parents;  // for each chosen token the number of the running beam that it continued
};

class Beams {
 public:
  Beams(const GenerationConfig& config, std::vector<TokenId> prompt, int64_t max_length);

  // One at the start, then at most num_beams, best first.
  const std::vector<Beam>& running() const { return running_; }
  // rows[i] [vocabulary]: added to the score of running beam i for each next token. `stops` says whether a sequence
  // ends for a reason other than its last token or its length. Afterwards running beam j continues the former beam
  // running()[j].parents.back().
  void advance(std::span<const std::span<float>> rows, const std::function<bool(std::span<const TokenId>)>& stops);
  bool done() const { return done_; }
  // The best complete beams, best first; if there are none, the best running ones.
  std::vector<Beam> best(size_t count) const;

 private:
  struct Candidate {
    float score;
    size_t beam;
    TokenId token;
  };
  std::vector<Candidate> candidates(std::span<const std::span<float>> rows) const;
  void complete(Beam beam);
  bool can_improve() const;
  float divisor(int64_t length) const;

  const GenerationConfig& config_;
  size_t prompt_, width_, considered_;
  int64_t max_length_;
  std::vector<Beam> running_, complete_;
  bool done_ = false;
};

}  // namespace easydel::generation
