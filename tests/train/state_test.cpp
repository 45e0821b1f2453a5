#include "easydel/train/state.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/train/auto_state.h"
#include "easydel/train/losses.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

models::LoadOptions for_training() {
  models::LoadOptions options;
  options.dtype = options.param_dtype = models::DTypeSetting::fp32;
  options.training = true;
  return options;
}

Transformation some_tx() {
  Transformation tx;
  tx.optimizer.weight_decay = 0.01;
  tx.schedule.rate = 1e-3;
  tx.clip_grad = 1.0;
  return tx;
}

State small_state(std::optional<Transformation> tx = some_tx()) {
  const models::LoadOptions options = for_training();
  const bool begin = tx.has_value();
  return State::create({.model = models::load_model(test::test_data("models/stories260K-hf"), options),
                        .load = options,
                        .tx = std::move(tx),
                        .init_opt_state = begin});
}

void backward(const State& state) {
  const Tensor tokens = at::arange(3, 40, at::TensorOptions().dtype(at::kLong));
  nn::Pass pass = nn::Pass::over({0, tokens.size(0)});
  const Tensor hidden = state.model().forward({tokens}, pass).hidden;
  (-state.model().head().score(hidden.slice(0, 0, 36), tokens.slice(0, 1), pass).logps.mean()).backward();
}

TEST(State, GoesOnFromWhatItSavedToTheBit) {
  test::LogLines log;
  const test::TemporaryFolder folder;
  State whole = small_state(), first = small_state();
  for (int i = 0; i < 4; ++i) backward(whole), whole.apply_gradients();
  for (int i = 0; i < 2; ++i) backward(first), first.apply_gradients();
  EXPECT_EQ(first.save(folder / "out"), folder / "out/run-2");
  State again = State::load(folder / "out", for_training(), some_tx());
  EXPECT_EQ(again.step(), 2);
  EXPECT_EQ(again.size(), first.size());
  for (int i = 0; i < 2; ++i) backward(again), again.apply_gradients();
  EXPECT_EQ(again.step(), 4);
  EXPECT_TRUE(test::weights_of(again.model()) == test::weights_of(whole.model()));
}

TEST(State, ReadsWhatATrainerWroteAndIsReadByTransformersFolders) {
  test::LogLines log;
  const test::TemporaryFolder folder;
  Trainer trainer(test::small_run(folder.path(), "{max_training_steps: 2}"));
  trainer.run();
  const State state = State::load(folder / "out/small", for_training(), some_tx());
  EXPECT_EQ(state.step(), 2);
  EXPECT_EQ(state.optimizer().steps(), 2);
  EXPECT_TRUE(test::weights_of(state.model()) == test::weights_of(trainer.model()));
  const auto model = models::load_model(state.save(folder / "mine", false), for_training());
  EXPECT_TRUE(test::weights_of(*model) == test::weights_of(state.model()));
}

TEST(State, IsLoadedByWhatItsModelIsFor) {
  models::FromHub options;
  options.load.dtype = options.load.param_dtype = models::DTypeSetting::fp32;
  State state = AutoStateForCausalLM::from_pretrained(test::test_data("models/stories260K-hf").string(), options);
  EXPECT_EQ(state.step(), 0);
  EXPECT_FALSE(state.has_optimizer());
  state.init_tx(some_tx());
  backward(state);
  state.apply_gradients();
  EXPECT_EQ(state.step(), 1);
  EXPECT_THROW(AutoStateForSpeechSeq2Seq::from_pretrained(test::test_data("models/stories260K-hf").string(), options),
               UserError);
}

TEST(State, TakesGradientsByName) {
  State by_backward = small_state(), by_name = small_state();
  backward(by_backward);
  std::map<std::string, Tensor> gradients;
  for (const nn::Entry& entry : by_backward.model().parameters().entries())
    gradients[entry.path] = entry.shard.grad().clone();
  by_backward.apply_gradients();
  by_name.apply_gradients(gradients);
  EXPECT_TRUE(test::weights_of(by_name.model()) == test::weights_of(by_backward.model()));
}

TEST(State, RefusesWhatCannotBe) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(test::refusal([] { State::create({}); }),
            "State.create: there is no model\n    give one that was loaded with training: true");
  EXPECT_EQ(test::refusal([] {
              const auto model = models::load_model(test::test_data("models/stories260K-hf"), for_training());
              State::create({.model = model, .init_opt_state = true});
            }),
            "State.create: init_opt_state needs an optimizer\n    give tx, or call init_tx later");
  State state = small_state(std::nullopt);
  EXPECT_EQ(test::refusal([&] { state.apply_gradients(); }),
            "State: the optimizer has no state yet\n    call init_tx first");
  state.init_tx(some_tx());
  EXPECT_EQ(test::refusal([&] {
              state.apply_gradients({{"model.nothing", at::zeros({1})}});
            }),
            "State.apply_gradients: there is no trained parameter 'model.nothing'\n    see `easydel describe model` "
            "for their names");
  EXPECT_EQ(test::refusal([&] {
              state.apply_gradients({{"model.norm.weight", at::zeros({1})}});
            }),
            "State.apply_gradients: the gradient of model.norm.weight is [1], the parameter [64]");
  EXPECT_EQ(
      test::replaced(test::refusal([&] { State::load(folder.path(), for_training()); }), folder.path().string(), "DIR"),
      "DIR: there is no saved state\n    give a folder with state.json, or with run-<step> below it");
}

}  // namespace
}  // namespace easydel::train
