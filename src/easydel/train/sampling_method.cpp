#include "easydel/train/sampling_method.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/train/language_rows.h"

namespace easydel::train {
namespace {

void check_window(const RolloutKeys& rollouts, const TrainerConfig& common, int64_t steps_per_generation) {
  const int64_t accumulation = common.gradient_accumulation_steps;
  if (rollouts.temperature == 0)
    refuse("trainer.temperature", "is 0, so all completions of a prompt would be equal", "give 1");
  if (steps_per_generation % accumulation != 0 && accumulation % steps_per_generation != 0)
    refuse("trainer.steps_per_generation",
           str(steps_per_generation, " micro-batches and ", accumulation,
               " of an update (gradient_accumulation_steps) do not divide"),
           "make one a multiple of the other");
}

// Prompts that leave no room are refused with their rows.
void check_positions(const RolloutKeys& keys, int64_t positions) {
  if (positions == 0) return;
  if (keys.max_completion_length >= positions)
    refuse("trainer.max_completion_length",
           str(keys.max_completion_length, " new tokens leave no room for a prompt: the model has ", positions,
               " positions"),
           str("give at most ", positions - 1));
  // A default only cuts.
  const int64_t length = keys.max_prompt_length;
  if (length >= positions && length != usual_prompt_length && length != long_prompt_length)
    refuse("trainer.max_prompt_length",
           str("prompts of ", keys.max_prompt_length, " tokens leave no room for a completion: the model has ",
               positions, " positions"),
           str("give at most ", positions - 1));
}

// What else changes scores is not repeated when completions are learned.
void check_importance(const RolloutKeys& keys, const models::Model* model) {
  generation::GenerationConfig other;
  if (!keys.generation_kwargs.is_null()) other = generation::read_generation(keys.generation_kwargs);
  if (model) other = generation::generation_config(model->folder(), other);
  const std::pair<const char*, bool> changing[] = {
      {"presence_penalty", keys.presence_penalty != 0},
      {"frequency_penalty", keys.frequency_penalty != 0},
      {"repetition_penalty", keys.repetition_penalty != 1},
      {"generation_kwargs.encoder_repetition_penalty", other.encoder_repetition_penalty != 1},
      {"generation_kwargs.exponential_decay_length_penalty", other.exponential_decay_length_penalty.has_value()},
      {"generation_kwargs.guidance_scale", other.guidance_scale != 1},
      {"generation_kwargs.sequence_bias", !other.sequence_bias.empty()},
      {"generation_kwargs.watermarking_config", other.watermarking_config.has_value()},
  };
  for (const auto& [key, changes] : changing)
    if (changes)
      refuse("trainer.importance",
             str("is sampled, and ", key,
                 " changes the scores of tokens, so that completions are not drawn from the "
                 "model's own probabilities"),
             str("leave ", key, " out, or use importance: full"));
}

std::vector<const data::Example*> pointers(const std::vector<data::Example>& examples) {
  std::vector<const data::Example*> out;
  for (const data::Example& example : examples) out.push_back(&example);
  return out;
}

}  // namespace

SamplingMethod::SamplingMethod(const Setting& setting, Keys keys)
    : keys_(std::move(keys)),
      common_(setting.trainer.common),
      model_(setting.model),
      judges_(setting.side.rewards),
      tokenizer_(setting.tokenizer) {
  if (tokenizer_) {
    encoder_.emplace(tokenizer_, data::EncoderOptions{});
    check_window(keys_.rollouts, common_,
                 keys_.window.steps_per_generation.value_or(common_.gradient_accumulation_steps));
    if (model_) check_positions(keys_.rollouts, model_->max_positions());
    if (is_truncated()) check_importance(keys_.rollouts, model_.get());
  }
  if (!keys_.reference || !setting.model) return;
  std::optional<Reference::Following> following;
  if (keys_.reference->sync_ref_model)
    following = {keys_.reference->ref_model_mixup_alpha, keys_.reference->ref_model_sync_steps};
  reference_ = Reference(setting, following);
}

data::Prepared SamplingMethod::prepare(const data::TypedRow& given) const {
  data::TypedRow row = given;
  if (row.tools.is_null()) row.tools = keys_.rollouts.tools;
  if (row.template_arguments.is_null()) row.template_arguments = keys_.rollouts.chat_template_kwargs;
  if (keys_.rollouts.skip_apply_chat_template) refuse_conversation(row);
  std::vector<int32_t> ids = encoder_->encode_prompt(row);
  if (ids.empty()) refuse(row.where, "the prompt is empty", "give it at least one token, or drop the row");
  data::Prepared out;
  const auto most = size_t(keys_.rollouts.max_prompt_length);
  if (ids.size() > most) {
    out.cut_tokens = int64_t(ids.size() - most);
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(most));
  }
  if (const int64_t positions = model_ ? model_->max_positions() : 0; positions > 0 && int64_t(ids.size()) >= positions)
    refuse(row.where,
           str("a prompt of ", ids.size(), " tokens leaves no room for a completion: the model has ", positions,
               " positions"),
           str("drop the row, or set trainer.max_prompt_length to at most ", positions - 1));
  data::Example& example = out.example.emplace();
  example.add_sequence(ids, std::vector<uint8_t>(ids.size(), 0));
  example.set({row_column, data::Column::Per::example,
               std::vector<int64_t>{rows_.add({row.columns, row.prompt, given.tools, given.template_arguments})}});
  return out;
}

Batch SamplingMethod::collate(std::span<const data::Example* const> examples) const {
  Batch batch = flat_batch(examples);
  batch.weight = double(batch.examples);
  return batch;
}

nn::ScoreOptions SamplingMethod::scoring(bool entropy, bool entropy_gradient) const {
  return {.temperature = keys_.rollouts.temperature,
          .entropy = entropy,
          .entropy_gradient = entropy_gradient,
          .chunk = common_.loss().chunk_token_size.value_or(0)};
}

Tensor SamplingMethod::of_learned(const Batch& batch, const char* column) {
  return batch.has(column) ? batch.column(column).masked_select(batch.labels.ne(data::no_label)) : Tensor();
}

void SamplingMethod::add_learned(std::vector<data::Example>& examples, const char* column, const Tensor& numbers) {
  const Tensor own = numbers.detach().to(at::kCPU, at::kFloat).contiguous();
  const float* next = own.const_data_ptr<float>();
  for (data::Example& example : examples) {
    std::vector<float> values(example.tokens.size(), 0.0F);
    for (size_t i = 0; i < values.size(); ++i)
      if (example.labels[i] != data::no_label) values[i] = *next++;
    example.set({column, data::Column::Per::token, std::move(values)});
  }
}

SequenceScores SamplingMethod::scores_now(const std::vector<data::Example>& examples) const {
  const c10::AutoGradMode no_grad(false);
  Forwarding how;
  how.training = how.metrics = false;
  return score_sequences(*model_, collate(pointers(examples)), how, scoring(false));
}

SequenceScores SamplingMethod::reference_scores(const std::vector<data::Example>& examples) const {
  return reference_.score(collate(pointers(examples)), {}, scoring(false));
}

RolloutPlan SamplingMethod::plan_of(const BatchSource& rows, bool samples) const {
  RolloutPlan plan;
  plan.accumulation = common_.gradient_accumulation_steps;
  plan.steps_per_generation = keys_.window.steps_per_generation.value_or(plan.accumulation);
  plan.iterations = keys_.window.num_iterations;
  if (!samples) {
    plan.steps_in_epoch = rows.steps_in_epoch();
    return plan;
  }
  const int64_t prompts = micro_batch() * plan.steps_per_generation / keys_.examples_of_prompt;
  const int64_t windows = std::max<int64_t>(rows.examples_in_epoch() / prompts, 1);
  plan.steps_in_epoch = std::max<int64_t>(windows * plan.steps_per_generation * plan.iterations / plan.accumulation, 1);
  return plan;
}

SamplingMethod::Window SamplingMethod::recorded(BatchSource& rows, const RolloutPlan& plan, int64_t window) {
  Window out;
  for (int64_t i = 0; i < plan.steps_per_generation; ++i) {
    const int64_t micro = window * plan.steps_per_generation * plan.iterations + i;
    auto& examples = out.emplace_back();
    const std::vector<MicroBatch> step = rows.step(micro / plan.accumulation);
    for (const data::Example* example : step[size_t(micro % plan.accumulation)]) examples.push_back(*example);
  }
  complete(out, plan);
  return out;
}

SamplingMethod::Window SamplingMethod::in_micro_batches(std::vector<data::Example> examples,
                                                        const RolloutPlan& plan) const {
  const size_t each = examples.size() / size_t(plan.steps_per_generation);
  Window out(size_t(plan.steps_per_generation));
  for (size_t i = 0; i < examples.size(); ++i) out[i / each].push_back(std::move(examples[i]));
  return out;
}

Sampler SamplingMethod::sampler_of(const Generation& generation) const {
  return is_truncated() ? generation.sampler.with_kept_tokens() : generation.sampler;
}

void SamplingMethod::record(const Rollouts& rollouts, const Generation& generation, const std::vector<float>& worth) {
  if (generation.evaluates()) return;
  const RolloutPlan& plan = generation.plan;
  const int64_t step = generation.window * plan.steps_per_generation * plan.iterations / plan.accumulation + 1;
  rollouts_->record(rollouts, folder_, step, worth);
}

void SamplingMethod::say(std::vector<Metric> metrics, const Generation& generation) {
  if (!generation.evaluates()) return say(std::move(metrics));
  // Batches of an evaluation count by their prompts.
  for (Metric& metric : metrics)
    metric.sum *= double(generation.prompts.size()), metric.count *= double(generation.prompts.size());
  evaluation_metrics_ = std::move(metrics);
}

std::optional<Method::SampledSizes> SamplingMethod::sampled_sizes() const {
  const int64_t windows = keys_.window.steps_per_generation.value_or(common_.gradient_accumulation_steps);
  const int64_t each = keys_.rollouts.num_return_sequences / keys_.examples_of_prompt;
  return SampledSizes{.completions = micro_batch() * windows * each,
                      .sequences = micro_batch() * each,
                      .completion_tokens = keys_.rollouts.max_completion_length};
}

int64_t SamplingMethod::evaluated_group() const {
  return keys_.window.num_generations_eval.value_or(keys_.rollouts.num_return_sequences);
}

std::vector<data::Example> SamplingMethod::evaluated(std::vector<data::Example> rows, const Sampler* sampler,
                                                     int64_t first) {
  if (!sampler || !rollouts_) return rows;
  const int64_t group = keys_.examples_of_prompt > 1 ? evaluated_group() : keys_.rollouts.num_return_sequences;
  const RolloutPlan plan;
  return sampled({pointers(rows), *sampler, plan, -1 - first, group}).at(0);
}

std::unique_ptr<BatchSource> SamplingMethod::source(std::unique_ptr<BatchSource> rows, const Sampler* sampler) {
  if (sampler)
    rollouts_.emplace(GroupRollouts::Setup{*model_, tokenizer_, rows_, keys_.rollouts,
                                           uint64_t(common_.shuffle_seed_train), judges_, episodes()});
  if (sampler && !sampler->same_bits())
    log::info(
        "this family computes generated tokens in another order than those of a prompt: completions are scored "
        "once more by the training forward");
  const RolloutPlan plan = plan_of(*rows, sampler != nullptr);
  const auto make = [this, source = rows.get(), sampler, plan](int64_t window) {
    if (!sampler) return recorded(*source, plan, window);
    const int64_t prompts = micro_batch() * plan.steps_per_generation / keys_.examples_of_prompt;
    return sampled(
        {source->take(window * prompts, prompts), *sampler, plan, window, keys_.rollouts.num_return_sequences});
  };
  auto out = std::make_unique<RolloutSource>(std::move(rows), plan, make);
  source_ = out.get();
  return out;
}

int64_t SamplingMethod::epoch_of(uint64_t step) const {
  return source_ ? int64_t(step) / std::max<int64_t>(source_->steps_in_epoch(), 1) : 0;
}

void SamplingMethod::add_generation_metrics(std::vector<Metric>& metrics, const Forwarding& forwarding) const {
  if (!forwarding.metrics) return;
  std::vector<Metric>& unsaid = forwarding.training ? generation_metrics_ : evaluation_metrics_;
  metrics.insert(metrics.end(), unsaid.begin(), unsaid.end());
  unsaid.clear();
}

void SamplingMethod::updated(const models::Model& model, int64_t step) {
  if (reference_.exists()) reference_.follow(model, step);
}

MethodState SamplingMethod::state() const {
  MethodState out;
  if (reference_.exists()) reference_.add_state(out);
  if (source_) source_->save(out);
  return out;
}

void SamplingMethod::restore(const SavedState& saved) {
  if (reference_.exists()) reference_.restore(saved);
  if (source_) source_->restore(saved);
}

}  // namespace easydel::train
