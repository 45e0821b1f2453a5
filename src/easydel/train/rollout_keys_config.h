// Keys shared by the methods that sample their own completions. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/train/method_facts.h"
#include "easydel/train/rewards_config.h"

namespace easydel::train {

// Of the methods that learn from rewards of their own completions.
inline constexpr MethodFacts facts_of_sampling{.rows = {data::RowKind::prompt},
                                               .samples = true,
                                               .columns = true,
                                               .reference = SideModelUse::optional,
                                               .reward = SideModelUse::optional};

// Which distribution the probability ratios of a loss are of.
enum class Importance : uint8_t { full, sampled };
constexpr auto choices(Importance) {
  using enum Importance;
  return std::array{config::Choice{full, "full"}, config::Choice{sampled, "sampled"}};
}
inline constexpr const char* importance_help =
    "Which distribution probability ratios, entropies and divergences are of: full, over the whole vocabulary, as in "
    "TRL; sampled, over the tokens that top_k, top_p and min_p left when the completion was sampled, for the trained "
    "model and the reference too. With sampled, ratios are not biased by the cut-off. It stores those tokens, 12 bytes "
    "each.";

// Defaults of max_prompt_length.
inline constexpr int64_t usual_prompt_length = 512, long_prompt_length = 1024;

struct RolloutKeys {
  int64_t max_prompt_length = usual_prompt_length;
  int64_t max_completion_length = 256;
  int64_t num_return_sequences = 4;
  double temperature = 0.7;
  double top_p = 0.95;
  std::optional<int64_t> top_k = 50;
  std::optional<double> min_p = {};
  double presence_penalty = 0;
  double frequency_penalty = 0;
  double repetition_penalty = 1;
  Value generation_kwargs = {};
  Value chat_template_kwargs = {};
  bool skip_apply_chat_template = false;
  Value tools = {};
  std::vector<RewardEntry> rewards = {};
  std::optional<std::vector<double>> reward_weights = {};
  bool log_completions = false;
  bool mask_truncated_completions = false;
  std::optional<int64_t> dataset_num_proc = {};
  std::optional<int64_t> logprob_vocab_chunk_size = {};

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&RolloutKeys::max_completion_length, &RolloutKeys::num_return_sequences, &RolloutKeys::temperature,
                    &RolloutKeys::top_p, &RolloutKeys::top_k, &RolloutKeys::min_p, &RolloutKeys::presence_penalty,
                    &RolloutKeys::frequency_penalty, &RolloutKeys::repetition_penalty, &RolloutKeys::generation_kwargs,
                    &RolloutKeys::reward_weights, &RolloutKeys::log_completions,
                    &RolloutKeys::mask_truncated_completions>();
  }

  static constexpr auto doc = "How completions are sampled.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_prompt_length>("Longest prompt in tokens; its end is kept.", at_least(1)),
        field<&C::max_completion_length>("Tokens of a completion.", at_least(1)),
        field<&C::num_return_sequences>("Completions per prompt: the group whose rewards are compared.", at_least(1),
                                        alias("num_generations"), alias("group_size")),
        field<&C::temperature>("Temperature of the sampled completions.", at_least(0)),
        field<&C::top_p>("Sample from the smallest set of tokens whose probabilities add up to this.", between(0, 1)),
        field<&C::top_k>("Sample from this many of the likeliest tokens; null: all.", at_least(0)),
        field<&C::min_p>("Minimum probability, relative to the likeliest token's; null: none.", between(0, 1)),
        field<&C::presence_penalty>("Subtracted from the score of tokens that occurred.", between(-2, 2)),
        field<&C::frequency_penalty>("Subtracted from the score of tokens for each occurrence.", between(-2, 2)),
        field<&C::repetition_penalty>("Divides the score of tokens that occurred.", above(0)),
        field<&C::generation_kwargs>("More sampling parameters."),
        field<&C::chat_template_kwargs>("More arguments of the chat template."),
        field<&C::skip_apply_chat_template>("Use prompts unchanged, without the chat template."),
        field<&C::tools>("Tools offered to the model: JSON Schemas, or Python functions."),
        field<&C::rewards>("What completions are worth; the weighted sum counts."),
        field<&C::reward_weights>("Weight of each reward; null: those of the entries."),
        field<&C::log_completions>("Log some completions of each generation with their rewards."),
        field<&C::mask_truncated_completions>("Mask truncated completions in the loss."),
        field<&C::dataset_num_proc>("Processes that tokenize.",
                                    no_effect("rows are tokenized once, before the first step")),
        field<&C::logprob_vocab_chunk_size>("Vocabulary entries scored at a time; null: by size.", at_least(1),
                                            no_effect("scores run over chunks of tokens")),
    };
  }
};

struct WindowKeys {
  int64_t num_iterations = 1;
  std::optional<int64_t> steps_per_generation = {};
  std::optional<int64_t> num_generations_eval = {};

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&WindowKeys::num_iterations, &WindowKeys::steps_per_generation,
                    &WindowKeys::num_generations_eval>();
  }

  static constexpr auto doc = "How often completions are sampled and learned.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::num_iterations>("How often each completion is learned.", at_least(1)),
        field<&C::steps_per_generation>(
            "Micro-batches whose completions are sampled together; null: gradient_accumulation_steps. With more, later "
            "steps learn from completions of an older model, and samples come in larger batches.",
            at_least(1)),
        field<&C::num_generations_eval>("Completions per prompt in an evaluation; null: as in training.", at_least(1)),
    };
  }
};

struct ReferenceKeys {
  bool sync_ref_model = false;
  double ref_model_mixup_alpha = 0.9;
  int64_t ref_model_sync_steps = 64;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&ReferenceKeys::sync_ref_model, &ReferenceKeys::ref_model_mixup_alpha,
                    &ReferenceKeys::ref_model_sync_steps>();
  }

  static constexpr auto doc = "How the reference follows the model.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::sync_ref_model>("Move the reference towards the model (arXiv:2404.09656)."),
        field<&C::ref_model_mixup_alpha>("Weight of the model in the new reference.", between(0, 1)),
        field<&C::ref_model_sync_steps>("Steps between moves.", at_least(1)),
    };
  }
};

struct TeachingKeys {
  int64_t max_prompt_length = 512;
  int64_t max_completion_length = 256;
  int64_t num_generations_per_prompt = 1;
  double temperature_sampling = 0.7;
  std::optional<int64_t> top_k = 50;
  double top_p = 0.95;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  double repetition_penalty = 1;
  bool skip_apply_chat_template = false;

  static std::vector<std::string_view> keys_after_examples() {
    return names_of<&TeachingKeys::max_completion_length, &TeachingKeys::num_generations_per_prompt,
                    &TeachingKeys::temperature_sampling, &TeachingKeys::top_k, &TeachingKeys::top_p,
                    &TeachingKeys::presence_penalty, &TeachingKeys::frequency_penalty,
                    &TeachingKeys::repetition_penalty>();
  }

  static constexpr auto doc = "How completions are sampled for a student.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::max_prompt_length>("Longest prompt in tokens; its end is kept.", at_least(1)),
        field<&C::max_completion_length>("Tokens of a completion.", at_least(1)),
        field<&C::num_generations_per_prompt>("Number of completions sampled per prompt.", at_least(1)),
        field<&C::temperature_sampling>("Temperature of the sampled completions.", at_least(0)),
        field<&C::top_k>("Sample from this many of the likeliest tokens; null: all.", at_least(0)),
        field<&C::top_p>("Sample from the smallest set of tokens whose probabilities add up to this.", between(0, 1)),
        field<&C::presence_penalty>("Subtracted from the score of tokens that occurred.", between(-2, 2)),
        field<&C::frequency_penalty>("Subtracted from the score of tokens for each occurrence.", between(-2, 2)),
        field<&C::repetition_penalty>("Divides the score of tokens that occurred.", above(0)),
        field<&C::skip_apply_chat_template>("Use prompts unchanged, without the chat template."),
    };
  }
};

}  // namespace easydel::train
