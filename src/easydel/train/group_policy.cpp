#include "easydel/train/group_policy.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

SamplingMethod::Keys shared_keys(const GroupPolicy::Keys& keys) {
  SamplingMethod::Keys out{keys.rollouts, keys.window};
  if (keys.beta != 0) out.reference = keys.reference;
  out.examples_of_prompt = keys.rollouts.num_return_sequences;
  out.importance = keys.importance;
  return out;
}

}  // namespace

GroupPolicy::GroupPolicy(const Setting& setting, const Keys& keys) : SamplingMethod(setting, shared_keys(keys)) {
  if (tokenizer())
    check_groups(keys.window.steps_per_generation.value_or(setting.trainer.common.gradient_accumulation_steps));
}

data::Prepared GroupPolicy::prepare(const data::TypedRow& row) const {
  data::Prepared out = SamplingMethod::prepare(row);
  const RolloutKeys& keys = rollout_keys();
  const bool judged = only_rewards_count() && !has_judges() && !keys.rewards.empty();
  if (judged && give_only_equal(keys.rewards, row.columns)) out.mistakes.add(data::RowMistake::equal_group);
  return out;
}

void GroupPolicy::check_groups(int64_t steps_per_generation) const {
  const int64_t group = rollout_keys().num_return_sequences, completions = micro_batch() * steps_per_generation;
  if (group < 2)
    refuse("trainer.num_return_sequences", "a group of one completion has nothing to be compared with",
           "give at least 2");
  if (rollout_keys().top_k == 1)
    refuse("trainer.top_k", "is 1, so all completions of a group would be equal",
           "give 0 for all tokens, or at least 2");
  if (completions % group != 0)
    refuse("trainer.num_return_sequences",
           str("groups of ", group, " completions do not divide the ", completions,
               " of a generation (total_batch_size counts completions: ", micro_batch(), " in each of ",
               steps_per_generation, " micro-batches)"),
           str("make total_batch_size a multiple of ", group));
}

// The reference's log-probabilities as it is when the completions are made.
void GroupPolicy::add_reference(std::vector<data::Example>& examples) const {
  if (reference().exists()) add_learned(examples, reference_logps_column, reference_scores(examples).logps);
}

void GroupPolicy::complete(Window& window, const RolloutPlan& plan) {
  for (std::vector<data::Example>& examples : window) {
    for (data::Example& example : examples) {
      const float items = std::get<std::vector<float>>(example.find(generation_items_column)->values).at(0);
      const auto completions = float(plan.steps_per_generation * int64_t(examples.size()));
      example.set(
          {mean_items_column, data::Column::Per::sequence, std::vector<float>{std::max(items, 1.0F) / completions}});
    }
    add_reference(examples);
    score_recorded(examples);
  }
}

SamplingMethod::Window GroupPolicy::sampled(const Generation& generation) {
  const Sampler sampler = sampler_of(generation);
  Rollouts rollouts =
      this->rollouts().make(Completer{&sampler, generation.group}, generation.window, generation.prompts);

  std::vector<data::Example> all;
  int64_t learned = 0;
  for (size_t i = 0; i < rollouts.samples.size(); ++i) {
    const Sample& sample = rollouts.samples[i];
    const std::vector<int32_t>& prompt = rollouts.prompt_of(i);
    data::Example& example = all.emplace_back(learned_example(prompt, sample.ids, sample.inserted));
    std::vector<float> old(example.tokens.size(), 0.0F);
    std::ranges::copy(is_truncated() ? sample.kept_logps : sample.logps,
                      old.begin() + static_cast<std::ptrdiff_t>(prompt.size()) - 1);
    if (rollout_keys().mask_truncated_completions && !sample.ended()) std::ranges::fill(example.labels, data::no_label);
    example.set({old_logps_column, data::Column::Per::token, std::move(old)});
    if (is_truncated()) example.set(kept_tokens(example, prompt.size(), sample.kept));
  }
  const std::vector<size_t> places = generation.evaluates() ? std::vector<size_t>() : kept(rollouts.rewards, all);
  RewardTable judged = rollouts.rewards;
  if (!places.empty()) {
    std::vector<data::Example> chosen;
    for (const size_t place : places) chosen.push_back(std::move(all[place]));
    all = std::move(chosen);
    judged = part_of(judged, places, int64_t(places.size() / rollouts.prompts.size()));
  }
  for (const data::Example& example : all) learned += example.labelled();
  const auto completions = double(all.size());
  Window out = in_micro_batches(std::move(all), generation.plan);
  all.clear();
  for (std::vector<data::Example>& micro : out) {
    add_reference(micro);
    if (!sampler.same_bits()) add_learned(micro, old_logps_column, scores_now(micro).logps);
    all.insert(all.end(), micro.begin(), micro.end());
  }
  const Advantages found = advantages(judged, all);
  const Tensor values = found.values.contiguous();
  const std::vector<float> list(values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel());
  const float mean_items = float(std::max<int64_t>(learned, 1)) / float(completions);
  size_t i = 0;
  for (std::vector<data::Example>& micro : out)
    for (data::Example& example : micro) {
      const size_t place = places.empty() ? i : places[i];
      const auto& old = std::get<std::vector<float>>(example.find(old_logps_column)->values);
      float sum = 0;
      for (size_t k = 0; k < example.labels.size(); ++k)
        if (example.labels[k] != data::no_label) sum += old[k];
      for (const auto& [name, value] :
           {std::pair{advantages_column, list[i++]}, {mean_items_column, mean_items}, {completion_logps_column, sum}})
        example.set({name, data::Column::Per::sequence, std::vector<float>{value}});
      add_context(example, rollouts, place);
    }
  std::vector<float> worth = list;
  if (!places.empty()) {
    worth.assign(rollouts.samples.size(), 0.0F);
    for (size_t k = 0; k < places.size(); ++k) worth[places[k]] = list[k];
  }
  record(rollouts, generation, worth);
  if (!generation.evaluates()) on_policy_ = true;
  std::vector<Metric> metrics = std::move(rollouts.metrics);
  metrics.insert(metrics.end(), found.metrics.begin(), found.metrics.end());
  say(std::move(metrics), generation);
  return out;
}

void GroupPolicy::add_sampling_difference(std::vector<Metric>& metrics, const Tensor& logps, const Batch& batch,
                                          const Forwarding& how) const {
  const Tensor old = of_learned(batch, old_logps_column);
  if ((how.training && !on_policy_) || !old.defined() || old.numel() == 0) return;
  const Tensor distance = (logps.detach() - old.to(logps.device())).abs().max();
  metrics.push_back({"sampling/logp_difference", how.gather(distance.view({1})).max().item<double>(), 1});
}

void GroupPolicy::updated(const models::Model& model, int64_t step) {
  SamplingMethod::updated(model, step);
  on_policy_ = false;
}

}  // namespace easydel::train
