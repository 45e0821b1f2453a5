// Continues prompts with the model in its current state, for methods that generate their own examples while they train.
// Ids in, ids out: nothing is decoded and encoded again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "easydel/generation/generation_config.h"
#include "easydel/models/model.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::train {

class Sampler {
 public:
  // The tokenizer may be null: then stop strings are refused.
  Sampler(std::shared_ptr<const models::Model> model, std::shared_ptr<const text::Tokenizer> tokenizer)
      : model_(std::move(model)), tokenizer_(std::move(tokenizer)) {}

  // The new tokens of each prompt's results, config.num_return_sequences per prompt, including the end token. Draws
  // depend only on config.seed and the prompt. No gradients. Throws UserError like generation::Generator::run.
  std::vector<std::vector<int32_t>> run(const std::vector<std::vector<int32_t>>& prompts,
                                        const generation::GenerationConfig& config) const;

 private:
  std::shared_ptr<const models::Model> model_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
};

}  // namespace easydel::train
