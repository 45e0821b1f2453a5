// Examples whose completions a model samples while the run trains, for the methods that learn from a student's or a
// teacher's own texts without rewards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "easydel/generation/generation_config.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/batch_source.h"
#include "easydel/train/method.h"
#include "easydel/train/rollout_keys_config.h"
#include "easydel/train/sampler.h"

namespace easydel::train {

struct CompletionOptions {
  // How completions are sampled; num_return_sequences of each prompt become examples of their own. The seed is the
  // run's.
  generation::GenerationConfig generation;
  int64_t max_prompt_length = 0;  // the end of a longer prompt is kept; 0: all of it
  // Who continues the prompts of a micro-batch; null: its examples are learned as they are. Called with the number of
  // the step and of the micro-batch in it.
  std::function<const Sampler*(int64_t step, int64_t micro)> sampler_of;
};

// How the keys of the teaching methods sample. The end tokens are the model's.
CompletionOptions completion_options(const TeachingKeys& keys, const Setting& setting);

// Method::sampled_sizes() of a method whose micro-batches are sampled so.
Method::SampledSizes sampled_sizes(const generation::GenerationConfig& config, const TrainerConfig& common);

// The end tokens of a model's folder, or the tokenizer's if the folder names none.
void set_end_tokens(generation::GenerationConfig& config, const models::Model& model, const text::Tokenizer* tokenizer);

// The examples with other completions, as CompletionSource makes them; `seed`: of the draws for the prompt of a place.
std::vector<data::Example> completed(std::span<const data::Example* const> examples, const CompletionOptions& options,
                                     const Sampler& sampler, const std::function<uint64_t(size_t place)>& seed);
// Held-out examples with completions of a model, for Method::evaluated(). `first`: examples that were evaluated before.
std::vector<data::Example> completed_held_out(const std::vector<data::Example>& examples,
                                              const CompletionOptions& options, const Sampler& sampler, int64_t first);

// A step's examples are those of `rows` with other completions: of an example's tokens those before the first labelled
// one are the prompt, or all if none is labelled. The tokens that are sampled are labelled, the end token included. A
// step is a function of its number and of the sampling model's weights.
class CompletionSource final : public BatchSource {
 public:
  CompletionSource(std::unique_ptr<BatchSource> rows, CompletionOptions options)
      : rows_(std::move(rows)), options_(std::move(options)) {}
  int64_t steps_in_epoch() const override { return rows_->steps_in_epoch(); }
  std::vector<MicroBatch> step(int64_t step) override;
  Value cursor(int64_t step) const override { return rows_->cursor(step); }
  void go_to(int64_t step, const Value& cursor) override { rows_->go_to(step, cursor); }
  std::string fingerprint() const override { return rows_->fingerprint(); }
  data::Dataset* dataset() override { return rows_->dataset(); }

 private:
  std::unique_ptr<BatchSource> rows_;
  CompletionOptions options_;
  std::vector<std::vector<data::Example>> sampled_;  // of the last step, by micro-batch
};

}  // namespace easydel::train
