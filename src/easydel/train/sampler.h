// Continues prompts with the model in its current state, for methods that generate their own examples while they train.
// Ids in, ids out: nothing is decoded and encoded again. There is no second copy of the weights; keys and values are
// freed when a call returns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "easydel/generation/generation_config.h"
#include "easydel/generation/generator.h"
#include "easydel/models/model.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::train {

// A prompt to be continued config.num_return_sequences times.
struct SampleRequest {
  std::vector<int32_t> prompt;
  uint64_t seed = 0;  // of its draws, which depend on it, the index of the result and the position alone
  std::optional<int64_t> max_new_tokens = {};  // nothing: config's
};

struct Sample {
  std::vector<int32_t> ids;  // new ones, including the end token
  // Of each id at the temperature: over the whole vocabulary (the same bits as those of the training forward, except in
  // families that same_bits() names), and over what penalties, top-k, top-p and min-p left.
  std::vector<float> logps, kept_logps;
  // Of a sampler with kept tokens, for each id: the tokens that penalties, top-k, top-p and min-p left, in ascending
  // order; empty: all.
  std::vector<std::vector<int32_t>> kept = {};
  generation::StopReason reason = generation::StopReason::end;
  // Of an episode, for each id: 1 if it was not sampled but inserted (an answer to the model; its logps are 0). Empty:
  // none was.
  std::vector<uint8_t> inserted = {};
  bool ended() const { return reason == generation::StopReason::end; }
};

// The seed of a prompt's draws in a generation. `opponent`: of completions that another model draws for the prompt.
uint64_t draw_seed(uint64_t seed, int64_t generation, uint64_t prompt, bool opponent = false);

class Sampler {
 public:
  // The tokenizer may be null: then stop strings are refused.
  Sampler(std::shared_ptr<const models::Model> model, std::shared_ptr<const text::Tokenizer> tokenizer)
      : model_(std::move(model)), tokenizer_(std::move(tokenizer)) {}
  // The same without its adapters.
  Sampler without_adapters() const;
  // From the geometric mixture of two models: the logits (1 - weight) * this one's + weight * the other's. Requests
  // then have one result.
  Sampler mixed_with(const Sampler& other, double weight) const;

  // The same, whose samples name the tokens that each was drawn from (4 bytes each).
  Sampler with_kept_tokens() const;

  // The new tokens of each prompt's results, config.num_return_sequences per prompt, including the end token. Draws
  // depend only on config.seed and the prompt. No gradients. Throws UserError like generation::Generator::run.
  std::vector<std::vector<int32_t>> run(const std::vector<std::vector<int32_t>>& prompts,
                                        const generation::GenerationConfig& config) const;
  // The results of each request, one request after the other. `batch`: sequences that are decoded together, rounded up
  // to whole groups; the samples do not depend on it. The prompt of a group is computed once. Ranks that read different
  // examples (axes dp and fsdp) sample a part of the requests each, and all get all results; those of tp compute each
  // token together. JointError if a rank cannot sample its part. Collective.
  std::vector<Sample> sample(const std::vector<SampleRequest>& requests, const generation::GenerationConfig& config,
                             int64_t batch = default_batch) const;
  // Bytes of keys and values while a batch of sequences of this length is sampled.
  int64_t memory_bytes(int64_t sequences, int64_t length) const;
  // False: tokens that are generated are computed in another order than those of a prompt (recurrences, compressed
  // attention), so log-probabilities differ in their last bits from those of the training forward.
  bool same_bits() const;

  static constexpr int64_t default_batch = 64;

 private:
  std::vector<Sample> own_samples(std::span<const SampleRequest> requests, const generation::GenerationConfig& config,
                                  int64_t batch) const;

  std::shared_ptr<const models::Model> model_, other_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  bool adapters_ = true, kept_ = false;
  generation::GeneratorOptions::Blend blend_;  // of `other_`
};

}  // namespace easydel::train
