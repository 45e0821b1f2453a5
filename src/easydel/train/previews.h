// Texts that the model generates while it is trained, for people to read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/data/dataset.h"
#include "easydel/generation/generation_config.h"
#include "easydel/models/model.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/sampler.h"
#include "easydel/train/trainer_config.h"

namespace easydel::train {

struct Preview {
  std::string prompt, text;
  int64_t new_tokens = 0;
  std::string finish_reason;
};

class Previews {
 public:
  // `data`: that the model is trained on; null: prompts are the given ones alone. UserError: a prompt that the model
  // cannot begin with.
  Previews(const TrainerConfig& config, std::shared_ptr<const models::Model> model,
           std::shared_ptr<const text::Tokenizer> tokenizer, std::shared_ptr<const data::Dataset> data);

  // With the model's present weights. A function of the step, the weights and the run's seed. Collective.
  std::vector<Preview> after(int64_t step) const;

 private:
  std::vector<int32_t> prompt_of(const data::Example& example) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  Sampler sampler_;
  std::shared_ptr<const data::Dataset> data_;  // null: prompts are the given ones alone
  int64_t examples_at_once_, interval_;
  uint64_t seed_;
  generation::GenerationConfig generation_;
  std::vector<std::vector<int32_t>> prompts_;
};

// A line of previews.jsonl.
Value as_record(const Preview& preview, int64_t step);

}  // namespace easydel::train
