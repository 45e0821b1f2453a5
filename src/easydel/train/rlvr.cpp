// trainer_type: rlvr. Reinforcement learning with verifiable rewards: grpo whose rewards check answers, formats and
// lengths by its own keys, beside those of trainer.rewards.
#include "easydel/train/rlvr_config.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/train/grpo.h"

namespace easydel::train {
namespace {

RewardEntry entry_of(RewardType type, double weight) {
  RewardEntry out;
  out.type = type;
  out.weight = weight;
  return out;
}

RolloutKeys with_checks(const RlvrConfig& config) {
  const RlvrKeys& own = config.own;
  RolloutKeys out = config.rollouts;
  const auto add = [&](const RewardEntry& entry) {
    if (std::ranges::find(out.rewards, entry.type, &RewardEntry::type) == out.rewards.end())
      out.rewards.push_back(entry);
  };
  if (own.answer_key) {
    RewardEntry answer = entry_of(RewardType::answer, 1);
    answer.answer_key = *own.answer_key;
    add(answer);
  }
  if (own.format_pattern && own.format_reward_weight > 0) {
    RewardEntry format = entry_of(RewardType::format, own.format_reward_weight);
    format.pattern = own.format_pattern;
    add(format);
  }
  if (own.length_penalty_target && own.length_penalty_weight > 0) {
    RewardEntry length = entry_of(RewardType::length, own.length_penalty_weight);
    length.target = own.length_penalty_target;
    add(length);
  }
  out.mask_truncated_completions = out.mask_truncated_completions || own.max_len_mask;
  return out;
}

class Rlvr final : public Grpo {
 public:
  Rlvr(const Setting& setting, const RlvrConfig& config)
      : Grpo(setting, config.grpo,
             {config.grpo.beta, with_checks(config), config.window, config.reference, config.grpo.importance}),
        checks_(config.own) {
    if (checks_.difficulty_loss_weight && !checks_.difficulty_key)
      refuse("trainer.difficulty_loss_weight", "no field says how difficult a row is", "set difficulty_key");
  }

 protected:
  Advantages advantages(const RewardTable& rewards, const std::vector<data::Example>& examples) const override {
    RewardTable table = rewards;
    table.clip = checks_.reward_clip_range;
    Advantages out = Grpo::advantages(table, examples);
    if (checks_.difficulty_loss_weight) weigh(out.values, table.rows);
    return out;
  }

 private:
  // A row's difficulty is the weight of what is learned from its completions.
  void weigh(Tensor& advantages, const std::vector<const Value*>& rows) const {
    for (size_t i = 0; i < rows.size(); ++i) {
      const Value* const difficulty = rows[i]->find(*checks_.difficulty_key);
      if (!difficulty || !difficulty->as_double())
        refuse("trainer.difficulty_key",
               str("a row has no number '", *checks_.difficulty_key, "': ", to_json(*rows[i]).substr(0, 200)),
               "name a field that every row has, or set difficulty_loss_weight: false");
      advantages[int64_t(i)] *= *difficulty->as_double();
    }
  }

  RlvrKeys checks_;
};

}  // namespace

MethodEntry rlvr() {
  return {"rlvr", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<Rlvr>(setting, setting.trainer.own_as<RlvrConfig>());
          }};
}

}  // namespace easydel::train
