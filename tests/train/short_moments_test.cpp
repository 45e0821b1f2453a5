#include "easydel/train/short_moments.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/small_run.h"

namespace easydel::train {
namespace {

using test::small_run;

// optax.scale_by_adam with mu_dtype (optax/_src/transform.py): the update uses the new moment before it is rounded.
TEST(ShortMoments, AreOptaxs) {
  const double b1 = 0.9, b2 = 0.99, eps = 1e-8, rate = 1e-2, decay = 0.1;
  const auto rule = short_moments(adamw({.b1 = b1, .b2 = b2, .eps = eps}));
  Tensor value = at::randn({7, 33});
  Tensor expected = value.to(at::kDouble), mean = expected.mul(0), square = expected.mul(0);
  OptimizerStates states = rule->start(value);
  EXPECT_EQ(states.at("mean").scalar_type(), at::kBFloat16);
  EXPECT_EQ(states.at("square").scalar_type(), at::kFloat);
  for (int64_t step = 1; step <= 4; ++step) {
    const Tensor gradient = at::randn({7, 33}), g = gradient.to(at::kDouble);
    rule->update({.value = value, .gradient = gradient, .states = states, .step = step, .rate = rate, .decay = decay});
    mean = b1 * mean + (1 - b1) * g;
    square = b2 * square + (1 - b2) * g * g;
    const Tensor size = (square / (1 - std::pow(b2, step))).sqrt() + eps;
    expected = expected * (1 - rate * decay) - rate * (mean / (1 - std::pow(b1, step))) / size;
    mean = mean.to(at::kFloat).to(at::kBFloat16).to(at::kDouble);
    EXPECT_TRUE(value.to(at::kDouble).allclose(expected, 1e-5, 1e-6)) << step;
    EXPECT_TRUE(states.at("mean").to(at::kDouble).allclose(mean, 1e-2, 0)) << step;
  }
  EXPECT_FALSE(mean.equal(mean.to(at::kFloat).to(at::kDouble) + 1));
}

TEST(ShortMoments, AreSavedAndResumedToTheBit) {
  const test::LogLines log;
  const test::TemporaryFolder whole, halves;
  for (const char* optimizer : {"adamw", "lion", "muon"}) {
    const std::string keys = str("{optimizer: ", optimizer, ", tx_mu_dtype: bf16, model_name: ", optimizer, ", ");
    Trainer once(small_run(whole.path(), keys + "max_training_steps: 4}"));
    once.run();
    Trainer(small_run(halves.path(), keys + "max_training_steps: 2}")).run();
    Trainer rest(small_run(halves.path(), keys + "max_training_steps: 4}"));
    EXPECT_EQ(rest.plan().from_step, 2);
    rest.run();
    EXPECT_EQ(test::weights_of(once.model()), test::weights_of(rest.model())) << optimizer;
  }
}

TEST(ShortMoments, TakeTwoBytesLess) {
  const test::TemporaryFolder folder;
  const test::LogLines log;
  const auto plan = [&](const std::string& keys) { return Trainer(small_run(folder.path(), keys)).plan(); };
  const RunPlan full = plan("{}"), half = plan("{tx_mu_dtype: bf16}");
  EXPECT_EQ(full.memory.optimizer - half.memory.optimizer, 2 * full.trainable);
}

TEST(ShortMoments, AreRefusedWithoutAFirstMoment) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(
      test::refusal([&] { small_run(folder.path(), "{optimizer: rmsprop, tx_mu_dtype: bf16}"); }),
      "trainer:1:35: tx_mu_dtype: rmsprop keeps no first moment in fp32, so there is none to shorten\n    leave it "
      "out, "
      "or use adamw, adamax, ademamix, lion, mars, muon, nadam, quad, radam, skew, soap\n1 problem in trainer; nothing "
      "was run.");
}

}  // namespace
}  // namespace easydel::train
