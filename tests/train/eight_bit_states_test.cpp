#include "easydel/train/eight_bit_states.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "easydel/tensor/mapped.h"
#include "easydel/train/optimizer.h"
#include "easydel/weights/safetensors.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

using test::small_run;

std::unique_ptr<UpdateRule> rule_of(const std::string& name) {
  if (name == "lion") return lion(0.9, 0.99);
  if (name == "ademamix") return ademamix({.b1 = 0.9, .b2 = 0.99, .b3 = 0.999, .alpha = 5.0, .eps = 1e-8});
  return adamw({.b1 = 0.9, .b2 = 0.99, .eps = 1e-8});
}

// bitsandbytes' updates (scripts/eight_bit_optimizer_goldens.py). Each begins with its codes. Where a new state is
// almost in the middle of two codes, ours may be the next one.
TEST(EightBitStates, FollowBitsandbytes) {
  const auto file = weights::SafetensorsFile::open(test::test_data("optimizers/eight_bit.safetensors"));
  const auto at = [&](const std::string& name) { return tensor::from_view(file->at(name)).clone(); };
  for (const std::string name : {"adamw", "lion", "ademamix"}) {
    const auto rule = eight_bit(rule_of(name));
    Tensor value = at("value");
    OptimizerStates states = rule->start(value);
    for (int64_t step = 1; step <= 3; ++step) {
      const std::string of_step = name + "." + std::to_string(step) + ".";
      SCOPED_TRACE(of_step);
      rule->update({.value = value,
                    .gradient = at("gradient." + std::to_string(step)),
                    .states = states,
                    .step = step,
                    .rate = 1e-2,
                    .decay = 0.1});
      const Tensor wanted = at(of_step + "value");
      EXPECT_TRUE(value.allclose(wanted, 1e-5, 1e-6)) << (value - wanted).abs().max().item<float>();
      for (auto& [state, tensor] : states) {
        const Tensor recorded = at(of_step + state);
        if (state.ends_with("_codes")) {
          const Tensor apart = (tensor.to(at::kInt) - recorded.to(at::kInt)).abs();
          EXPECT_LE(apart.max().item<int>(), 1) << state;
          EXPECT_LE(apart.sum().item<int64_t>(), 4) << state;
        } else {
          EXPECT_TRUE(tensor.allclose(recorded, 1e-6, 0)) << state;
        }
        tensor.copy_(recorded);
      }
      value = wanted;
    }
  }
}

// A rule that only has update(): its states are decoded and encoded in long pieces.
class Whole final : public UpdateRule {
 public:
  explicit Whole(std::unique_ptr<UpdateRule> rule) : rule_(std::move(rule)) {}
  bool copies() const override { return rule_->copies(); }
  bool scales() const override { return rule_->scales(); }
  OptimizerStates start(const Tensor& value) const override { return rule_->start(value); }
  void update(const Update& u) const override { rule_->update(u); }

 private:
  std::unique_ptr<UpdateRule> rule_;
};

TEST(EightBitStates, HaveTheBitsOfWholeUpdatesInParts) {
  for (const int64_t count : {int64_t(4096), int64_t(70001)}) {
    std::vector<Tensor> results;
    for (const bool whole : {true, false}) {
      std::unique_ptr<UpdateRule> own = adamw({});
      if (whole) own = std::make_unique<Whole>(std::move(own));
      const auto rule = eight_bit(std::move(own));
      const auto random = [&](unsigned seed) {
        std::mt19937 generator(seed);
        std::normal_distribution<float> normal;
        Tensor out = at::empty({count});
        std::generate_n(out.mutable_data_ptr<float>(), count, [&] { return normal(generator); });
        return out;
      };
      Tensor value = random(1), copy = at::zeros({count}, at::kBFloat16);
      OptimizerStates states = rule->start(value);
      for (int64_t step = 1; step <= 3; ++step)
        rule->update({.value = value,
                      .gradient = random(unsigned(1 + step)),
                      .states = states,
                      .step = step,
                      .rate = 1e-2,
                      .decay = 0.1,
                      .copy = copy,
                      .scale = 0.5});
      results.push_back(value), results.push_back(copy);
      for (const auto& [name, state] : states) results.push_back(state);
    }
    ASSERT_EQ(results.size(), 12u);
    for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(results[i].equal(results[6 + i])) << count << " " << i;
  }
}

TEST(EightBitStates, TakeAboutAByteForEachState) {
  const auto rule = eight_bit(adamw({}));
  const auto bytes_of = [&](at::IntArrayRef shape) {
    int64_t bytes = 0;
    for (const auto& [name, state] : rule->start(at::ones(shape))) bytes += int64_t(state.nbytes());
    return bytes;
  };
  EXPECT_EQ(bytes_of({64, 1024}), 2 * (64 * 1024 + 64 * 1024 / 256 * 4));  // 2.03 bytes a parameter
  EXPECT_EQ(bytes_of({63, 65}), 2 * 63 * 65 * 4) << "fewer than 4096 elements stay in fp32";
}

TEST(EightBitStates, KeepThoseOfEmbeddingsInFp32OnRequest) {
  models::LoadOptions options;
  options.dtype = options.param_dtype = models::DTypeSetting::fp32;
  options.training = true;
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), options);
  OptimizerRules rules{eight_bit(adamw({}))};
  const auto coded = [&](nn::Role role) {
    bool out = false;
    const Optimizer optimizer(model->parameters(), {.rules = rules});
    for (const auto& slot : optimizer.slots())
      if (slot.entry->role == role) out |= slot.states.contains("mean_codes");
    return out;
  };
  EXPECT_TRUE(coded(nn::Role::embedding));
  rules.embeddings = adamw({});
  EXPECT_FALSE(coded(nn::Role::embedding));
  EXPECT_TRUE(coded(nn::Role::weight));
}

TEST(EightBitStates, AreNotResumedAsFp32OrTheReverse) {
  test::LogLines log;
  const test::TemporaryFolder work;
  const auto refused = [&](const std::string& keys) {
    const std::string text =
        test::refusal([&] { Trainer(small_run(work.path(), "{num_train_epochs: 1, " + keys)).run(); });
    return text.substr(0, text.find('\n')).substr(text.find(": ") + 2);
  };
  Trainer(small_run(work.path(), "{num_train_epochs: 1, optimizer: adamw_8bit, max_training_steps: 2}")).run();
  EXPECT_EQ(refused("optimizer: adamw}"),
            "it cannot be continued with other settings: trainer.optimizer adamw_8bit -> adamw");
  EXPECT_EQ(
      refused("optimizer: adamw_8bit, extra_optimizer_kwargs: {stable_embedding: true}}"),
      "it cannot be continued with other settings: trainer.extra_optimizer_kwargs.stable_embedding false -> true");
}

}  // namespace
}  // namespace easydel::train
