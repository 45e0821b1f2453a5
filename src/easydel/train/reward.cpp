// trainer_type: reward. A model that scores answers, from pairs (Bradley-Terry), as trl/trainer/reward_trainer.py has
// it: the class head's one score of the last token, margins, and centring (arXiv:2312.09244).
#include "easydel/train/reward_config.h"

#include <ATen/ops/log_sigmoid.h>

#include "easydel/base/error.h"
#include "easydel/data/encode.h"
#include "easydel/train/pairs.h"

namespace easydel::train {
namespace {

class Reward final : public Method {
 public:
  explicit Reward(const Setting& setting)
      : config_(setting.trainer.own_as<RewardConfig>()), common_(setting.trainer.common) {
    if (setting.tokenizer) encoder_.emplace(setting.tokenizer, data::EncoderOptions{});
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    data::Prepared out;
    data::Example example;
    for (const std::vector<int32_t>& ids : encoder_->encode_whole_pair(row)) {
      if (common_.max_length.value_or(0) > 0 && int64_t(ids.size()) > *common_.max_length) {
        out.too_long = true;
        return out;
      }
      example.add_sequence(ids, std::vector<uint8_t>(ids.size(), 0));
    }
    if (!row.margin.is_null()) {
      if (!row.margin.as_double())
        refuse(row.where, str("field 'margin' holds ", to_yaml_flow(row.margin), ", which is not a number"));
      example.set({data::pair_margin, data::Column::Per::example, std::vector<float>{float(*row.margin.as_double())}});
    }
    out.example = std::move(example);
    return out;
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    batch.weight = double(batch.examples);
    return batch;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    Forwarding how = forwarding;
    if (config_.disable_dropout) how.training = false;
    nn::Pass pass;
    const models::Outputs outputs = how.run(model, batch, pass);
    const nn::ClassHead* const head = model.class_head();
    check(head, "a reward model without a class head");
    const Tensor scores = head->scores(outputs.hidden, batch.tokens, pass).squeeze(1);
    const Halves rewards = halves(scores);
    Tensor difference = rewards.chosen - rewards.rejected;
    if (batch.has(data::pair_margin)) difference = difference - batch.column(data::pair_margin).to(scores.device());
    Loss out;
    out.sum = -at::log_sigmoid(difference).mean() * batch.weight;
    if (config_.center_rewards_coefficient)
      out.sum = out.sum + (rewards.chosen + rewards.rejected).square().mean() *
                              (*config_.center_rewards_coefficient * batch.weight);
    if (how.metrics) add_metrics(out, rewards, how.gather(scores.detach()));
    return out;
  }

 private:
  static void add_metrics(Loss& out, const Halves& rewards, const Tensor& all) {
    const auto number = [](const Tensor& t) { return t.detach().item<double>(); };
    const auto pairs = double(rewards.chosen.size(0));
    out.metrics.push_back({"min_reward", number(all.min()), 1});
    out.metrics.push_back({"mean_reward", number(all.mean()), 1});
    out.metrics.push_back({"max_reward", number(all.max()), 1});
    out.metrics.push_back({"accuracy", number(rewards.chosen.gt(rewards.rejected).sum()), pairs});
    out.metrics.push_back({"margin", number((rewards.chosen - rewards.rejected).sum()), pairs});
  }

  RewardConfig config_;
  TrainerConfig common_;
  std::optional<data::Encoder> encoder_;
};

}  // namespace

MethodEntry reward() {
  return {"reward",
          [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Reward>(setting); }};
}

}  // namespace easydel::train
