// Draws of a training step: on which facts they depend, and that there are none outside of training.
#include "easydel/nn/randomness.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace easydel::nn {
namespace {

Randomness training(uint64_t seed = 3, uint64_t step = 5, int64_t first_token = 0) {
  Randomness random;
  random.training = true;
  random.seed = seed, random.step = step, random.first_token = first_token;
  return random;
}

TEST(Randomness, ChangesNothingOutsideOfTraining) {
  const Randomness random;
  const Tensor x = at::ones({8, 4});
  EXPECT_TRUE(random.dropout("a", x, 0.9).is_same(x));
  EXPECT_TRUE(random.jitter("a", x, 0.9).is_same(x));
  EXPECT_FALSE(random.leaves_out("layer", 1.0));
  EXPECT_TRUE(training().dropout("a", x, 0.0).is_same(x));
}

TEST(Randomness, FollowsFromSeedStepNameAndTheTokensIndex) {
  const auto draws = [](const Randomness& random, const char* name) { return random.uniform(name, 6, 4); };
  const Tensor expected = draws(training(), "a");
  EXPECT_TRUE(expected.equal(draws(training(), "a")));
  EXPECT_FALSE(expected.equal(draws(training(4), "a")));
  EXPECT_FALSE(expected.equal(draws(training(3, 6), "a")));
  EXPECT_FALSE(expected.equal(draws(training(), "b")));
  // The same tokens in two micro-batches.
  EXPECT_TRUE(expected.slice(0, 4).equal(training(3, 5, 4).uniform("a", 2, 4)));
}

TEST(Randomness, DropsAndJittersByTheTokensIndex) {
  const Tensor x = at::ones({40, 8});
  const Tensor dropped = training().dropout("a", x, 0.5), jittered = training().jitter("a", x, 0.1);
  EXPECT_GT(dropped.eq(0).sum().item<int64_t>(), 0);
  EXPECT_GT(dropped.ne(0).sum().item<int64_t>(), 0);
  EXPECT_LE((jittered - 1).abs().max().item<float>(), 0.1f);
  EXPECT_TRUE(dropped.slice(0, 10).equal(training(3, 5, 10).dropout("a", x.slice(0, 10), 0.5)));
  EXPECT_TRUE(jittered.slice(0, 10).equal(training(3, 5, 10).jitter("a", x.slice(0, 10), 0.1)));
}

TEST(Randomness, LeavesOutAShareOfTheLayers) {
  int64_t left_out = 0;
  for (uint64_t step = 0; step < 400; ++step) left_out += training(3, step).leaves_out("model.layers.0", 0.25);
  EXPECT_GT(left_out, 60);
  EXPECT_LT(left_out, 140);
  EXPECT_FALSE(training().leaves_out("model.layers.0", 0.0));
}

// arXiv:2310.05914: uniform in (-alpha, alpha) / sqrt(length * size), by each sequence's own length.
TEST(Randomness, NoiseOfEmbeddingsIsUniformAndScaledByTheSequence) {
  Randomness random;
  random.seed = 3, random.step = 5;
  const Tensor x = at::zeros({500, 64});
  const std::vector<int64_t> cu_seqlens{0, 100, 500};
  random.embedding_noise = 5;
  EXPECT_TRUE(random.noised_embeddings(x, cu_seqlens).equal(x)) << "not while training";
  random.training = true;
  const Tensor noise = random.noised_embeddings(x, cu_seqlens);
  for (size_t s = 0; s < 2; ++s) {
    const Tensor part = noise.slice(0, cu_seqlens[s], cu_seqlens[s + 1]);
    const double bound = 5 / std::sqrt(double(part.numel()));
    EXPECT_LT(part.abs().max().item<double>(), bound);
    EXPECT_GT(part.abs().max().item<double>(), 0.99 * bound);
    EXPECT_NEAR(part.mean().item<double>(), 0, 0.03 * bound);
    EXPECT_NEAR(part.square().mean().item<double>(), bound * bound / 3, 0.02 * bound * bound);
  }
  // A token's noise depends on its place in the step alone.
  Randomness later = random;
  later.first_token = 100;
  EXPECT_TRUE(later.noised_embeddings(x.slice(0, 100), {0, 400}).equal(noise.slice(0, 100)));
}

}  // namespace
}  // namespace easydel::nn
