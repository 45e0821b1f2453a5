#include "easydel/train/group_policy.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/log.h"

namespace easydel::train {

GroupPolicy::GroupPolicy(const Setting& setting, Keys keys)
    : keys_(std::move(keys)), common_(setting.trainer.common), model_(setting.model), tokenizer_(setting.tokenizer) {
  if (tokenizer_) {
    encoder_.emplace(tokenizer_, data::EncoderOptions{});
    check_groups(!keys_.rollouts.rewards.empty());
  }
  if (keys_.beta == 0 || !setting.model) return;
  const ReferenceKeys& reference = keys_.reference;
  std::optional<Reference::Following> following;
  if (reference.sync_ref_model) following = {reference.ref_model_mixup_alpha, reference.ref_model_sync_steps};
  reference_ = Reference(setting, following);
}

void GroupPolicy::check_groups(bool has_rewards) const {
  const RolloutKeys& rollouts = keys_.rollouts;
  const int64_t accumulation = common_.gradient_accumulation_steps, group = rollouts.num_return_sequences;
  const int64_t steps = keys_.window.steps_per_generation.value_or(accumulation);
  if (!has_rewards)
    refuse("trainer.rewards", "is missing, so no completion is worth more than another",
           "name at least one, such as [{type: answer}]");
  if (group < 2)
    refuse("trainer.num_return_sequences", "a group of one completion has nothing to be compared with",
           "give at least 2");
  if (rollouts.temperature == 0)
    refuse("trainer.temperature", "is 0, so all completions of a prompt would be equal", "give 1");
  if (common_.do_eval)
    refuse("trainer.do_eval", "evaluating a method that samples is not built yet", "set it to false");
  if (steps % accumulation != 0 && accumulation % steps != 0)
    refuse("trainer.steps_per_generation",
           str(steps, " micro-batches and ", accumulation, " of an update (gradient_accumulation_steps) do not divide"),
           "make one a multiple of the other");
  const int64_t completions = micro_batch() * steps;
  if (completions % group != 0)
    refuse("trainer.num_return_sequences",
           str("groups of ", group, " completions do not divide the ", completions,
               " of a generation (total_batch_size counts completions: ", micro_batch(), " in each of ", steps,
               " micro-batches)"),
           str("make total_batch_size a multiple of ", group));
}

data::Prepared GroupPolicy::prepare(const data::TypedRow& given) const {
  data::TypedRow row = given;
  if (row.tools.is_null()) row.tools = keys_.rollouts.tools;
  if (row.template_arguments.is_null()) row.template_arguments = keys_.rollouts.chat_template_kwargs;
  if (row.conversational && keys_.rollouts.skip_apply_chat_template)
    refuse(row.where, "the prompt is a conversation, and trainer.skip_apply_chat_template is set",
           "give the prompt as a text, or leave the key out");
  std::vector<int32_t> ids = encoder_->encode_prompt(row);
  if (ids.empty()) refuse(row.where, "the prompt is empty", "give it at least one token, or drop the row");
  data::Prepared out;
  const auto most = size_t(keys_.rollouts.max_prompt_length);
  if (ids.size() > most) {
    out.cut_tokens = int64_t(ids.size() - most);
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(most));
  }
  data::Example& example = out.example.emplace();
  example.add_sequence(ids, std::vector<uint8_t>(ids.size(), 0));
  example.set({row_column, data::Column::Per::example, std::vector<int64_t>{rows_.add(row.columns)}});
  return out;
}

Batch GroupPolicy::collate(std::span<const data::Example* const> examples) const {
  Batch batch = flat_batch(examples);
  batch.weight = double(batch.examples);
  return batch;
}

nn::ScoreOptions GroupPolicy::scoring(bool entropy, bool entropy_gradient) const {
  return {.temperature = keys_.rollouts.temperature,
          .entropy = entropy,
          .entropy_gradient = entropy_gradient,
          .chunk = common_.loss().chunk_token_size.value_or(0)};
}

Tensor GroupPolicy::of_learned(const Batch& batch, const char* column) {
  return batch.has(column) ? batch.column(column).masked_select(batch.labels.ne(data::no_label)) : Tensor();
}

namespace {

std::vector<const data::Example*> pointers(const std::vector<data::Example>& examples) {
  std::vector<const data::Example*> out;
  for (const data::Example& example : examples) out.push_back(&example);
  return out;
}

// A column of numbers of the learned tokens, in the order of the examples; one sequence an example.
void add_learned(std::vector<data::Example>& examples, const char* column, const Tensor& numbers) {
  const Tensor own = numbers.detach().to(at::kCPU).contiguous();
  const float* next = own.const_data_ptr<float>();
  for (data::Example& example : examples) {
    std::vector<float> values(example.tokens.size(), 0.0F);
    for (size_t i = 0; i < values.size(); ++i)
      if (example.labels[i] != data::no_label) values[i] = *next++;
    example.set({column, data::Column::Per::token, std::move(values)});
  }
}

}  // namespace

SequenceScores GroupPolicy::scores_now(const std::vector<data::Example>& examples) const {
  const c10::AutoGradMode no_grad(false);
  Forwarding how;
  how.training = how.metrics = false;
  return score_sequences(*model_, collate(pointers(examples)), how, scoring(false));
}

// The reference's log-probabilities as it is when the completions are made.
void GroupPolicy::add_reference(std::vector<data::Example>& examples) const {
  if (!reference_.exists()) return;
  const Tensor logps = reference_.score(collate(pointers(examples)), {}, scoring(false)).logps;
  add_learned(examples, reference_logps_column, logps);
}

RolloutPlan GroupPolicy::plan_of(const BatchSource& rows, bool samples) const {
  RolloutPlan plan;
  plan.accumulation = common_.gradient_accumulation_steps;
  plan.steps_per_generation = keys_.window.steps_per_generation.value_or(plan.accumulation);
  plan.iterations = keys_.window.num_iterations;
  if (!samples) {
    plan.steps_in_epoch = rows.steps_in_epoch();
    return plan;
  }
  const int64_t prompts = micro_batch() * plan.steps_per_generation / keys_.rollouts.num_return_sequences;
  const int64_t windows = std::max<int64_t>(rows.examples_in_epoch() / prompts, 1);
  plan.steps_in_epoch = std::max<int64_t>(windows * plan.steps_per_generation * plan.iterations / plan.accumulation, 1);
  return plan;
}

std::vector<std::vector<data::Example>> GroupPolicy::recorded(BatchSource& rows, const RolloutPlan& plan,
                                                              int64_t window) const {
  std::vector<std::vector<data::Example>> out;
  for (int64_t i = 0; i < plan.steps_per_generation; ++i) {
    const int64_t micro = window * plan.steps_per_generation * plan.iterations + i;
    auto& examples = out.emplace_back();
    const std::vector<MicroBatch> step = rows.step(micro / plan.accumulation);
    for (const data::Example* example : step[size_t(micro % plan.accumulation)]) examples.push_back(*example);
    for (data::Example& example : examples) {
      const float items = std::get<std::vector<float>>(example.find(generation_items_column)->values).at(0);
      const auto completions = float(plan.steps_per_generation * int64_t(examples.size()));
      example.set(
          {mean_items_column, data::Column::Per::sequence, std::vector<float>{std::max(items, 1.0F) / completions}});
    }
    add_reference(examples);
    complete(examples);
  }
  return out;
}

std::vector<std::vector<data::Example>> GroupPolicy::sampled(BatchSource& rows, const Sampler& sampler,
                                                             const RolloutPlan& plan, int64_t window) {
  const int64_t group = keys_.rollouts.num_return_sequences, each = micro_batch();
  const int64_t completions = each * plan.steps_per_generation, prompts = completions / group;
  Rollouts rollouts = rollouts_->make(sampler, window, rows.take(window * prompts, prompts));

  std::vector<std::vector<data::Example>> out(size_t(plan.steps_per_generation));
  std::vector<data::Example> all;
  int64_t learned = 0;
  for (size_t i = 0; i < rollouts.samples.size(); ++i) {
    const Sample& sample = rollouts.samples[i];
    const std::vector<int32_t>& prompt = rollouts.prompts[i / size_t(group)]->tokens;
    data::Example& example = all.emplace_back(learned_example(prompt, sample.ids));
    std::vector<float> old(example.tokens.size(), 0.0F);
    std::ranges::copy(sample.logps, old.begin() + static_cast<std::ptrdiff_t>(prompt.size()) - 1);
    if (keys_.rollouts.mask_truncated_completions && !sample.ended()) std::ranges::fill(example.labels, data::no_label);
    example.set({old_logps_column, data::Column::Per::token, std::move(old)});
    learned += example.labelled();
  }
  for (size_t begin = 0; begin < all.size(); begin += size_t(each)) {
    std::vector<data::Example>& micro = out[begin / size_t(each)];
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    micro.assign(first, first + static_cast<std::ptrdiff_t>(each));
    add_reference(micro);
    if (!sampler.same_bits()) add_learned(micro, old_logps_column, scores_now(micro).logps);
    std::ranges::copy(micro, first);
  }
  const Advantages found = advantages(rollouts.rewards, all);
  const Tensor values = found.values.contiguous();
  const std::vector<float> list(values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel());
  const float mean_items = float(std::max<int64_t>(learned, 1)) / float(completions);
  for (size_t i = 0; i < all.size(); ++i) {
    data::Example& example = out[i / size_t(each)][i % size_t(each)];
    const data::Column& old = *all[i].find(old_logps_column);
    float sum = 0;
    for (size_t k = 0; k < example.labels.size(); ++k)
      if (example.labels[k] != data::no_label) sum += std::get<std::vector<float>>(old.values)[k];
    for (const auto& [name, value] :
         {std::pair{advantages_column, list[i]}, {mean_items_column, mean_items}, {completion_logps_column, sum}})
      example.set({name, data::Column::Per::sequence, std::vector<float>{value}});
  }
  const int64_t step = window * plan.steps_per_generation * plan.iterations / plan.accumulation + 1;
  rollouts_->record(rollouts, folder_, step, list);
  on_policy_ = true;
  generation_metrics_ = std::move(rollouts.metrics);
  generation_metrics_.insert(generation_metrics_.end(), found.metrics.begin(), found.metrics.end());
  return out;
}

std::unique_ptr<BatchSource> GroupPolicy::source(std::unique_ptr<BatchSource> rows, const Sampler* sampler) {
  if (sampler)
    rollouts_.emplace(
        GroupRollouts::Setup{*model_, tokenizer_, rows_, keys_.rollouts, uint64_t(common_.shuffle_seed_train)});
  if (sampler && !sampler->same_bits())
    log::info(
        "this family computes generated tokens in another order than those of a prompt: completions are scored "
        "once more by the training forward");
  const RolloutPlan plan = plan_of(*rows, sampler != nullptr);
  const auto make = [this, source = rows.get(), sampler, plan](int64_t window) {
    return sampler ? sampled(*source, *sampler, plan, window) : recorded(*source, plan, window);
  };
  auto out = std::make_unique<RolloutSource>(std::move(rows), plan, make);
  source_ = out.get();
  return out;
}

void GroupPolicy::add_generation_metrics(std::vector<Metric>& metrics, const Forwarding& forwarding) const {
  if (!forwarding.training || !forwarding.metrics) return;
  metrics.insert(metrics.end(), generation_metrics_.begin(), generation_metrics_.end());
  generation_metrics_.clear();
}

void GroupPolicy::updated(const models::Model& model, int64_t step) {
  on_policy_ = false;
  if (reference_.exists()) reference_.follow(model, step);
}

MethodState GroupPolicy::state() const {
  MethodState out;
  if (reference_.exists()) reference_.add_state(out);
  if (source_) source_->save(out);
  return out;
}

void GroupPolicy::restore(const SavedState& saved) {
  if (reference_.exists()) reference_.restore(saved);
  if (source_) source_->restore(saved);
}

}  // namespace easydel::train
