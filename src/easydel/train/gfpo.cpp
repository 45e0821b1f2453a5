// trainer_type: gfpo. Group filtered policy optimisation (arXiv:2508.09726): grpo on the best completions of each
// group, those that are short and earn much reward per token.
#include "easydel/train/gfpo_config.h"

#include <algorithm>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/train/gfpo.h"
#include "easydel/train/grpo.h"

namespace easydel::train {

std::vector<double> filter_scores(const std::vector<double>& rewards, const std::vector<double>& lengths,
                                  const GfpoKeys& keys) {
  const size_t count = rewards.size();
  double longest = 0, best = 0;
  for (size_t i = 0; i < count; ++i) {
    longest = std::max(longest, lengths[i]);
    best = std::max(best, std::abs(rewards[i] / lengths[i]));
  }
  std::vector<double> out(count, 0);
  for (size_t i = 0; i < count; ++i) {
    if (keys.filter_by_efficiency && best > 0) out[i] += keys.efficiency_weight * rewards[i] / lengths[i] / best;
    if (keys.filter_by_length) out[i] += keys.length_weight * (1 - lengths[i] / longest);
  }
  return out;
}

std::vector<size_t> best_of(const std::vector<double>& scores, size_t most) {
  std::vector<size_t> places(scores.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::stable_sort(places, std::ranges::greater(), [&](size_t i) { return scores[i]; });
  places.resize(std::min(most, places.size()));
  std::ranges::sort(places);
  return places;
}

namespace {

class Gfpo final : public Grpo {
 public:
  Gfpo(const Setting& setting, const GfpoConfig& config)
      : Grpo(setting, config.grpo,
             {config.grpo.beta, config.rollouts, config.window, config.reference, config.grpo.importance}),
        filter_(config.own) {
    const int64_t group = config.rollouts.num_return_sequences;
    if (filter_.num_remains_in_group.value_or(group) > group)
      refuse("trainer.num_remains_in_group",
             str(*filter_.num_remains_in_group, " of ", group, " completions cannot remain"),
             str("give at most ", group, ", or raise num_return_sequences"));
    const int64_t steps =
        config.window.steps_per_generation.value_or(setting.trainer.common.gradient_accumulation_steps);
    const int64_t kept = micro_batch() * steps / group * filter_.num_remains_in_group.value_or(group);
    if (setting.tokenizer && kept % steps != 0)
      refuse("trainer.num_remains_in_group",
             str("the ", kept, " completions that remain of a generation cannot be shared by its ", steps,
                 " micro-batches"),
             "make total_batch_size larger, or gradient_accumulation_steps smaller");
  }

 protected:
  std::vector<size_t> kept(const RewardTable& rewards, const std::vector<data::Example>& examples) const override {
    const Tensor worth = weighted_rewards(rewards).nan_to_num(0).to(at::kDouble).contiguous();
    const double* const reward = worth.const_data_ptr<double>();
    const auto group = size_t(rewards.group);
    std::vector<size_t> out;
    for (size_t begin = 0; begin < examples.size(); begin += group) {
      std::vector<double> lengths;
      for (size_t i = begin; i < begin + group; ++i)
        lengths.push_back(double(std::max<int64_t>(examples[i].labelled(), 1)));
      const std::vector<double> scores = filter_scores({reward + begin, reward + begin + group}, lengths, filter_);
      for (const size_t i : best_of(scores, size_t(filter_.num_remains_in_group.value_or(rewards.group))))
        out.push_back(begin + i);
    }
    return out;
  }

 private:
  GfpoKeys filter_;
};

}  // namespace

MethodEntry gfpo() {
  return {"gfpo", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<Gfpo>(setting, setting.trainer.own_as<GfpoConfig>());
          }};
}

}  // namespace easydel::train
