// trainer_type: ppo. Proximal policy optimisation (arXiv:1707.06347) as TRL 0.24's ppo_trainer.py has it, with a value
// head on the policy instead of a second model.
#include "easydel/train/ppo_config.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/train/ppo_terms.h"
#include "easydel/train/sampling_method.h"
#include "easydel/train/value_head.h"

namespace easydel::train {
namespace {

// Columns per token: of tokens at the place that predicts them, of values at the place that they are before.
constexpr const char *ppo_old_logps = "old_logps", *ppo_advantages = "advantages", *ppo_values = "values",
                     *ppo_returns = "returns", *ppo_has_value = "has_value";

// Scores with values, of the tokens of completions and of the places with a value.
struct ValuedScores {
  nn::Scores tokens;
  Tensor values;
};

// The places of a completion's tokens in its example, [begin, begin + length).
struct Span {
  size_t begin = 0, length = 0;
};
Span span_of(const data::Example& example) {
  const auto first = std::ranges::find_if(example.labels, [](int32_t label) { return label != data::no_label; });
  return {size_t(first - example.labels.begin()), size_t(example.labelled())};
}

class Ppo final : public SamplingMethod {
 public:
  Ppo(const Setting& setting, const PpoConfig& config)
      : SamplingMethod(setting, {.rollouts = config.rollouts,
                                 .window = {.num_iterations = config.own.num_ppo_epochs},
                                 .reference = ReferenceKeys(),
                                 .importance = config.own.importance}),
        own_(config.own) {
    if (tokenizer() && config.rollouts.num_return_sequences != 1)
      refuse("trainer.num_return_sequences",
             str("is ", config.rollouts.num_return_sequences, ", and ppo samples one completion of a prompt"),
             "leave it out, or give 1");
    if (tokenizer() && config.rollouts.mask_truncated_completions)
      refuse("trainer.mask_truncated_completions", "ppo learns every completion",
             "leave it out; missing_eos_penalty makes those that do not end worse");
    if (setting.model) value_.emplace(*setting.model, uint64_t(setting.trainer.common.shuffle_seed_train));
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& how) const override {
    const ValuedScores found = scored(model, batch, how, own_.entropy_coef.value_or(0) != 0);
    const auto device = found.values.device();
    const Tensor places = batch.column(ppo_has_value).gt(0);
    const auto of_values = [&](const char* column) { return batch.column(column).masked_select(places).to(device); };
    const auto of_tokens = [&](const char* column) { return of_learned(batch, column).to(device); };
    const PpoTokens tokens{found.tokens.logps, of_tokens(ppo_old_logps), of_tokens(ppo_advantages)};
    const PpoLosses losses = ppo_losses(tokens, {found.values, of_values(ppo_values), of_values(ppo_returns)}, own_);
    const auto mean = [&](const Tensor& values) {
      return how.mean(values.sum(), at::full({}, double(values.numel()), values.options()), batch.weight);
    };
    const Tensor policy = mean(losses.policy), value = mean(losses.value);
    Tensor all = policy + own_.vf_coef * value;
    if (own_.entropy_coef.value_or(0) != 0) all = all - *own_.entropy_coef * mean(found.tokens.entropy);
    Loss out;
    out.sum = all * batch.weight;
    if (!how.metrics) return out;
    add_generation_metrics(out.metrics, how);
    // Means over micro-batches of means over tokens, as in TRL.
    const auto add = [&](const char* name, const Tensor& values) {
      out.metrics.push_back({name, mean(values.detach()).item<double>() * batch.weight, batch.weight});
    };
    const Tensor difference = (tokens.logps - tokens.old_logps).detach();
    add("loss/policy_avg", losses.policy);
    add("loss/value_avg", losses.value);
    add("policy/clipfrac_avg", losses.policy_clipped);
    add("val/clipfrac_avg", losses.value_clipped);
    add("policy/approxkl", 0.5 * difference.square());
    add("policy/ratio", difference.exp());
    add("policy/entropy", found.tokens.entropy);
    return out;
  }

  MethodState state() const override {
    MethodState out = SamplingMethod::state();
    if (value_) value_->add_state(out);
    return out;
  }
  void restore(const SavedState& saved) override {
    SamplingMethod::restore(saved);
    if (value_) value_->restore(saved);
  }

 private:
  // The tokens of the batch's labels, and the places of its column has_value.
  ValuedScores scored(const models::Model& model, const Batch& batch, const Forwarding& how, bool bonus) const {
    nn::Pass pass;
    const models::Outputs outputs = how.run(model, batch, pass);
    const auto [hidden, labels] = labelled_rows(outputs.hidden, batch, pass);
    const Tensor places = batch.column(ppo_has_value).gt(0).nonzero().squeeze(1).to(outputs.hidden.device());
    nn::ScoreOptions options = scoring(how.metrics || bonus, bonus);
    if (batch.has(kept_tokens_column)) options.kept = batch.column(kept_tokens_column);
    return {model.head().score(hidden, labels, pass, options), value_->values(outputs.hidden.index_select(0, places))};
  }

  void complete(Window& window, const RolloutPlan&) override {
    std::vector<float> rewards, missing_ends;
    for (const std::vector<data::Example>& micro : window)
      for (const data::Example& example : micro) {
        const auto number = [&](const char* column) {
          return std::get<std::vector<float>>(example.find(column)->values).at(0);
        };
        rewards.push_back(number(ppo_reward_column));
        missing_ends.push_back(number(ppo_ended_column) == 0 ? 1 : 0);
      }
    std::vector<Metric> metrics;
    learn_from(window, at::tensor(rewards), at::tensor(missing_ends), metrics);
    say(std::move(metrics));
  }

  Window sampled(const Generation& generation) override {
    const Sampler sampler = sampler_of(generation);
    Rollouts made = rollouts().make(Completer{&sampler, 1}, generation.window, generation.prompts);
    std::vector<data::Example> all;
    std::vector<float> missing_ends;
    for (size_t i = 0; i < made.samples.size(); ++i) {
      all.push_back(learned_example(made.prompts[i]->tokens, made.samples[i].ids));
      if (is_truncated()) all.back().set(kept_tokens(all.back(), made.prompts[i]->tokens.size(), made.samples[i].kept));
      missing_ends.push_back(made.samples[i].ended() ? 0 : 1);
    }
    Window out = in_micro_batches(std::move(all), generation.plan);
    const Tensor rewards = at::nan_to_num(weighted_rewards(made.rewards), 0.0),
                 sums = learn_from(out, rewards, at::tensor(missing_ends), made.metrics).sum(1).contiguous();
    say(std::move(made.metrics), generation);
    record(made, generation, {sums.const_data_ptr<float>(), sums.const_data_ptr<float>() + sums.numel()});
    return out;
  }

  // Adds to a whole generation what it learns from its rewards, [completions]; missing_ends is 1 for those that have no
  // end token. The advantages, [completions, width].
  Tensor learn_from(Window& window, const Tensor& rewards, const Tensor& missing_ends,
                    std::vector<Metric>& metrics) const {
    int64_t width = 0;
    for (const std::vector<data::Example>& micro : window)
      for (const data::Example& example : micro) width = std::max(width, int64_t(example.labelled()));
    for (std::vector<data::Example>& micro : window)
      for (data::Example& example : micro) {
        const auto [begin, length] = span_of(example);
        std::vector<float> has(example.tokens.size(), 0.0F);
        std::fill_n(has.begin() + static_cast<std::ptrdiff_t>(begin), length + (int64_t(length) < width ? 1 : 0), 1.0F);
        example.set({ppo_has_value, data::Column::Per::token, std::move(has)});
      }
    PpoGeneration generation = scored_generation(window, rewards.numel(), width);
    generation.scores = rewards - own_.missing_eos_penalty.value_or(0) * missing_ends;
    const PpoTargets targets = ppo_targets(generation, own_);
    int64_t row = 0;
    for (std::vector<data::Example>& micro : window)
      for (data::Example& example : micro) {
        set_places(example, ppo_advantages, targets.advantages[row]);
        set_places(example, ppo_values, targets.values[row]);
        set_places(example, ppo_returns, targets.returns[row]);
        ++row;
      }
    const auto mean = [&](const char* name, const Tensor& values) {
      metrics.push_back({name, values.mean().item<double>(), 1});
    };
    const Tensor divergence = targets.divergence.sum(1);
    mean("objective/kl", divergence);
    mean("objective/non_score_reward", -own_.kl_coef * divergence);
    mean("objective/scores", generation.scores);
    mean("objective/rlhf_reward", generation.scores - own_.kl_coef * divergence);
    return targets.advantages;
  }

  // All but the scores; adds the old log-probabilities to the examples.
  PpoGeneration scored_generation(Window& window, int64_t count, int64_t width) const {
    PpoGeneration generation;
    const Tensor empty = at::full({count, width}, 0.0, at::kFloat);
    generation.logps = empty.clone(), generation.reference = empty.clone(), generation.values = empty.clone();
    std::vector<int64_t> lengths;
    Forwarding how;
    how.training = how.metrics = false;
    const c10::AutoGradMode no_grad(false);
    for (std::vector<data::Example>& micro : window) {
      std::vector<const data::Example*> examples;
      for (const data::Example& example : micro) examples.push_back(&example);
      const ValuedScores own = scored(model(), collate(examples), how, false);
      const Tensor reference = reference_scores(micro).logps;
      add_learned(micro, ppo_old_logps, own.tokens.logps);
      int64_t token = 0, value = 0;
      for (const data::Example& example : micro) {
        const auto row = int64_t(lengths.size()), length = example.labelled(),
                   valued = length + (length < width ? 1 : 0);
        const auto put = [&](const Tensor& to, const Tensor& from, int64_t begin, int64_t size) {
          to[row].slice(0, 0, size).copy_(from.slice(0, begin, begin + size));
        };
        put(generation.logps, own.tokens.logps, token, length);
        put(generation.reference, reference, token, length);
        put(generation.values, own.values, value, valued);
        token += length, value += valued;
        lengths.push_back(length);
      }
    }
    generation.lengths = at::tensor(lengths, at::kLong);
    return generation;
  }

  // A row of numbers at the places of the example's tokens and of the value behind them.
  static void set_places(data::Example& example, const char* column, const Tensor& row) {
    const Tensor own = row.contiguous();
    const auto [begin, length] = span_of(example);
    std::vector<float> numbers(example.tokens.size(), 0.0F);
    std::copy_n(own.const_data_ptr<float>(), std::min(size_t(own.numel()), length + 1),
                numbers.begin() + static_cast<std::ptrdiff_t>(begin));
    example.set({column, data::Column::Per::token, std::move(numbers)});
  }

  PpoKeys own_;
  std::optional<ValueHead> value_;
};

}  // namespace

MethodEntry ppo() {
  return {"ppo", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<Ppo>(setting, setting.trainer.own_as<PpoConfig>());
          }};
}

}  // namespace easydel::train
