#include "easydel/train/online_pairs.h"

#include <ATen/ops/nan_to_num.h>

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

// Columns of the examples, one number each.
constexpr const char *reward_columns[] = {"first_reward", "second_reward"},
                     *ended_columns[] = {"first_ended", "second_ended"};

float number_in(const data::Example& example, const char* column) {
  const data::Column* const found = example.find(column);
  check(found, "a pair without ", column);
  return std::get<std::vector<float>>(found->values).at(0);
}

void set_number(data::Example& example, const char* column, float value) {
  example.set({column, data::Column::Per::example, std::vector<float>{value}});
}

}  // namespace

OnlinePairs::OnlinePairs(const Setting& setting, const Keys& keys)
    : SamplingMethod(setting, {keys.rollouts, {}, keys.reference}), keys_(keys) {
  if (tokenizer() && keys_.rollouts.num_return_sequences != 2)
    refuse("trainer.num_return_sequences",
           str("is ", keys_.rollouts.num_return_sequences, ", and a pair has two completions"),
           "leave it out, or give 2");
  if (tokenizer() && keys_.rollouts.mask_truncated_completions)
    refuse("trainer.mask_truncated_completions", "a pair is learned with both of its completions",
           "leave it out; missing_eos_penalty makes those that do not end worse");
}

std::vector<double> OnlinePairs::for_epochs(const char* key, const std::vector<double>& values) {
  if (values.empty()) refuse(key, "is an empty list", "give a number, or one for each epoch");
  return values;
}

data::Example OnlinePairs::example_of(const Pair& pair, bool learns_opponent) {
  data::Example out = learned_example(pair.prompt, pair.completion);
  if (learns_opponent) {
    std::vector<int32_t> ids = pair.prompt;
    ids.insert(ids.end(), pair.opponent.begin(), pair.opponent.end());
    std::vector<uint8_t> learn(ids.size(), 1);
    std::fill_n(learn.begin(), pair.prompt.size(), uint8_t{0});
    out.add_sequence(ids, learn);
  }
  for (size_t i = 0; i < 2; ++i) {
    set_number(out, reward_columns[i], pair.rewards[i]);
    set_number(out, ended_columns[i], pair.ended[i] ? 1.0F : 0.0F);
  }
  return out;
}

void OnlinePairs::complete(Window& window, const RolloutPlan&) {
  if (!keys_.missing_eos_penalty) return;
  for (std::vector<data::Example>& examples : window)
    for (data::Example& example : examples)
      for (size_t i = 0; i < 2; ++i)
        if (number_in(example, ended_columns[i]) == 0)
          set_number(example, reward_columns[i],
                     number_in(example, reward_columns[i]) - float(*keys_.missing_eos_penalty));
}

SamplingMethod::Window OnlinePairs::sampled(const Generation& generation) {
  const auto& [prompts, sampler, plan, window, group] = generation;
  // An evaluation is in the epoch of the step before it.
  if (!generation.evaluates()) epoch_ = epoch_of(uint64_t(window * plan.steps_per_generation / plan.accumulation));
  const std::optional<Sampler> second = opponent(sampler, epoch_);
  Rollouts made = second ? rollouts().make({Completer{&sampler}, Completer{&*second}}, window, prompts)
                         : rollouts().make(Completer{&sampler, 2}, window, prompts);
  // A completion that no reward counts for is worth 0, as in TRL.
  const Tensor worth = at::nan_to_num(weighted_rewards(made.rewards), 0.0).contiguous();
  const float* const rewards = worth.const_data_ptr<float>();
  std::vector<data::Example> all;
  std::vector<float> margins;
  for (size_t p = 0; p < made.prompts.size(); ++p) {
    const Sample &own = made.samples[2 * p], &other = made.samples[2 * p + 1];
    Pair pair{made.prompts[p]->tokens, own.ids, other.ids};
    for (size_t i = 0; i < 2; ++i)
      pair.rewards[i] = rewards[2 * p + i], pair.ended[i] = made.samples[2 * p + i].ended();
    all.push_back(example_of(pair, keys_.learns_opponent));
    margins.push_back(pair.rewards[0] - pair.rewards[1]);
    margins.push_back(-margins.back());
  }
  Window out = in_micro_batches(std::move(all), plan);
  complete(out, plan);
  record(made, generation, margins);
  say(std::move(made.metrics), generation);
  return out;
}

OnlinePairs::Judged OnlinePairs::judged(const Batch& batch, at::Device device) {
  const auto column = [&](const char* name) { return batch.column(name).to(device); };
  return {column(reward_columns[0]), column(reward_columns[1]), column(ended_columns[0]), column(ended_columns[1])};
}

OnlinePairs::Scored OnlinePairs::scored(const models::Model& model, const Batch& batch,
                                        const Forwarding& forwarding) const {
  Forwarding how = forwarding;
  if (keys_.disable_dropout) how.training = false;
  const nn::ScoreOptions options{.chunk = common().loss().chunk_token_size.value_or(0)};
  return {score_sequences(model, batch, how, options), reference().score(batch, how, options)};
}

void add_mean(Loss& out, const char* name, const Tensor& values) {
  out.metrics.push_back({name, values.detach().to(at::kDouble).sum().item<double>(), double(values.numel())});
}

}  // namespace easydel::train
