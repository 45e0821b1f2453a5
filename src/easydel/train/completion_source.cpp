#include "easydel/train/completion_source.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/train/sequence_logps.h"

namespace easydel::train {
namespace {

std::vector<int32_t> prompt_of(const data::Example& example, int64_t most) {
  const auto first = std::ranges::find_if(example.labels, [](int32_t label) { return label != data::no_label; });
  // The label of a token is the next one.
  const size_t length =
      first == example.labels.end() ? example.tokens.size() : size_t(first - example.labels.begin()) + 1;
  const size_t kept = most > 0 ? std::min(length, size_t(most)) : length;
  const auto end = example.tokens.begin() + static_cast<std::ptrdiff_t>(length);
  return {end - static_cast<std::ptrdiff_t>(kept), end};
}

// Gives a sampled answer the weight of the one that the data have, which is a message: that of its first label. All
// examples of a dataset have weights, or none has.
void take_weight(data::Example& sampled, const data::Example& example) {
  const data::Column* const weights = example.find(data::loss_weights);
  if (!weights) return;
  const auto first = std::ranges::find_if(example.labels, [](int32_t label) { return label != data::no_label; });
  const auto& of_labels = std::get<std::vector<float>>(weights->values);
  const float weight = first == example.labels.end() ? 1 : of_labels[size_t(first - example.labels.begin())];
  sampled.set({data::loss_weights, data::Column::Per::token, std::vector<float>(sampled.tokens.size(), weight)});
}

}  // namespace

void set_end_tokens(generation::GenerationConfig& config, const models::Model& model,
                    const text::Tokenizer* tokenizer) {
  if (!model.folder().empty()) {
    const generation::GenerationConfig own = generation::generation_config(model.folder());
    config.eos_token_id = own.eos_token_id, config.bos_token_id = own.bos_token_id;
    config.pad_token_id = own.pad_token_id;
  }
  if (config.eos_token_id.empty() && tokenizer && tokenizer->eos_id()) config.eos_token_id = {*tokenizer->eos_id()};
}

CompletionOptions completion_options(const TeachingKeys& keys, const Setting& setting) {
  CompletionOptions out;
  generation::GenerationConfig& config = out.generation;
  config.do_sample = keys.temperature_sampling > 0;
  if (config.do_sample) config.temperature = keys.temperature_sampling;
  config.top_k = keys.top_k.value_or(0), config.top_p = keys.top_p;
  config.presence_penalty = keys.presence_penalty, config.frequency_penalty = keys.frequency_penalty;
  config.repetition_penalty = keys.repetition_penalty;
  config.max_new_tokens = keys.max_completion_length;
  config.num_return_sequences = keys.num_generations_per_prompt;
  config.seed = uint64_t(setting.trainer.common.shuffle_seed_train);
  if (setting.model) set_end_tokens(config, *setting.model, setting.tokenizer.get());
  if (config.num_return_sequences > 1 && !config.do_sample)
    refuse("trainer.num_generations_per_prompt",
           str(config.num_return_sequences, " completions of a prompt would all be equal"),
           "set temperature_sampling above 0, or num_generations_per_prompt: 1");
  out.max_prompt_length = keys.max_prompt_length;
  return out;
}

Method::SampledSizes sampled_sizes(const generation::GenerationConfig& config, const TrainerConfig& common) {
  const int64_t prompts = common.total_batch_size / common.gradient_accumulation_steps;
  const int64_t sequences = prompts * std::max<int64_t>(1, config.num_return_sequences);
  Method::SampledSizes out;
  out.completions = out.sequences = sequences;
  out.completion_tokens = config.max_new_tokens.value_or(0);
  return out;
}

std::vector<data::Example> completed(std::span<const data::Example* const> examples, const CompletionOptions& options,
                                     const Sampler& sampler, const std::function<uint64_t(size_t place)>& seed) {
  std::vector<SampleRequest> prompts;
  for (const data::Example* example : examples)
    prompts.push_back({prompt_of(*example, options.max_prompt_length), seed(prompts.size())});
  const std::vector<Sample> completions = sampler.sample(prompts, options.generation);
  const auto each = size_t(options.generation.num_return_sequences);
  std::vector<data::Example> out;
  for (size_t i = 0; i < completions.size(); ++i) {
    out.push_back(learned_example(prompts[i / each].prompt, completions[i].ids));
    take_weight(out.back(), *examples[i / each]);
  }
  return out;
}

std::vector<data::Example> completed_held_out(const std::vector<data::Example>& examples,
                                              const CompletionOptions& options, const Sampler& sampler, int64_t first) {
  std::vector<const data::Example*> all;
  for (const data::Example& example : examples) all.push_back(&example);
  return completed(all, options, sampler,
                   [&](size_t place) { return draw_seed(options.generation.seed, -1, uint64_t(first) + place); });
}

std::vector<MicroBatch> CompletionSource::step(int64_t step) {
  std::vector<MicroBatch> micros = rows_->step(step);
  sampled_.assign(micros.size(), {});
  uint64_t before = 0;  // prompts of the step's earlier micro-batches
  for (size_t m = 0; m < micros.size(); ++m) {
    const size_t size = micros[m].size();
    if (const Sampler* const sampler = options_.sampler_of(step, int64_t(m))) {
      sampled_[m] = completed(micros[m], options_, *sampler,
                              [&](size_t place) { return draw_seed(options_.generation.seed, step, before + place); });
      micros[m].clear();
      for (const data::Example& example : sampled_[m]) micros[m].push_back(&example);
    }
    before += size;
  }
  return micros;
}

}  // namespace easydel::train
