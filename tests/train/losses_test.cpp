// Losses on logits that the recorded cases (tests/probe/recorded_vectors_test.cpp) do not cover.
#include "easydel/train/losses.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::train {
namespace {

Tensor longs(std::vector<int64_t> values, at::IntArrayRef shape) {
  return at::tensor(values, at::TensorOptions().dtype(at::kLong)).view(shape);
}

TEST(Losses, ChunksChangeNeitherValueNorGradient) {
  const Tensor labels = at::randint(0, 50, {3, 9}, at::TensorOptions().dtype(at::kLong));
  const Tensor numbers = at::randn({3, 9, 50});
  const auto run = [&](std::optional<int64_t> tokens, std::optional<int64_t> vocabulary) {
    const Tensor logits = numbers.clone().requires_grad_(true);
    const LossConfig config{
        .label_smoothing = 0.1, .z_loss = 0.01, .chunk_vocab_size = vocabulary, .chunk_token_size = tokens};
    const Tensor loss = causal_lm_loss(logits, {.labels = labels}, config).loss;
    loss.backward();
    return at::cat({loss.detach().view({1}), logits.grad().reshape({-1})});
  };
  const Tensor whole = run(std::nullopt, std::nullopt);
  for (const auto& chunks : {run(4, std::nullopt), run(std::nullopt, 7), run(5, 16), run(1000, 1000)})
    EXPECT_TRUE(chunks.allclose(whole, 1e-5, 1e-7));
}

TEST(Losses, AnIgnoredLabelHasNoGradientEvenWhereItsTokenIsReal) {
  const Tensor logits = at::randn({1, 4, 6}).requires_grad_(true);
  const Targets targets{.labels = longs({1, -100, 2, 3}, {1, 4}), .attention_mask = longs({1, 1, 1, 1}, {1, 4})};
  const LossMetrics metrics = causal_lm_loss(logits, targets, {.z_loss = 0.1});
  metrics.loss.backward();
  EXPECT_EQ(metrics.weight_sum.item<double>(), 2);
  EXPECT_EQ(logits.grad()[0][0].abs().sum().item<double>(), 0);
  EXPECT_GT(logits.grad()[0][1].abs().sum().item<double>(), 0);
}

TEST(Losses, RefuseWhatDoesNotFit) {
  const Tensor logits = at::zeros({2, 3, 5}), labels = longs({0, 1, 2, 3, 4, 0}, {2, 3});
  EXPECT_EQ(test::refusal([&] { causal_lm_loss(Tensor(), {.labels = labels}); }),
            "causal_lm_loss: logits or labels are missing\n    give both");
  EXPECT_EQ(test::refusal([&] {
              token_classification_loss(logits, {.labels = labels.view({3, 2})});
            }),
            "token_classification_loss: logits are [2, 3, 5], labels [3, 2]\n    give logits [batch, length, classes] "
            "and labels [batch, length]");
  EXPECT_EQ(test::refusal([&] {
              token_classification_loss(logits, {.labels = labels, .attention_mask = longs({1, 1}, {1, 2})});
            }),
            "loss: labels are [2, 3], their mask [1, 2]\n    give one number for each label");
  EXPECT_EQ(test::refusal([&] { causal_lm_loss(logits, {.labels = labels}, {.label_smoothing = 1.0}); }),
            "loss_config.label_smoothing: 1 is out of range\n    give a number from 0, below 1");
  EXPECT_EQ(test::refusal([&] { causal_lm_loss(logits, {.labels = labels}, {.z_loss = -1.0}); }),
            "loss_config.z_loss: -1 is negative\n    give a number of at least 0");
  EXPECT_EQ(test::refusal([&] { causal_lm_loss(logits, {.labels = labels}, {.chunk_block_size = 0}); }),
            "loss_config.chunk_block_size: 0 is not a size\n    give a number of at least 1, or null");
  const Tensor classes = at::zeros({2, 3});
  EXPECT_EQ(test::refusal([&] {
              sequence_classification_loss(classes, longs({0, 1, 2}, {3}));
            }),
            "sequence_classification_loss: logits are [2, 3], labels [3]\n    give logits [batch, classes] and labels "
            "of as many rows");
  EXPECT_EQ(test::refusal([&] {
              sequence_classification_loss(classes, longs({0, 1}, {2}), {.problem_type = "ranking"});
            }),
            "loss_config.problem_type: there is no problem 'ranking'\n"
            "    known: regression, single_label_classification, multi_label_classification");
  EXPECT_EQ(test::refusal([&] { sequence_classification_loss(classes, at::zeros({2})); }),
            "sequence_classification_loss: logits are [2, 3], labels [2]\n    several classes at once need 0 or 1 for "
            "each of them");
  EXPECT_EQ(
      test::refusal([&] { sequence_classification_loss(classes, at::zeros({2}), {.problem_type = "regression"}); }),
      "sequence_classification_loss: logits are [2, 3], labels [2]\n    a regression needs a number for each logit");
  EXPECT_EQ(
      test::refusal([&] {
        sequence_classification_loss(classes, at::zeros({2}), {.problem_type = "single_label_classification"});
      }),
      "sequence_classification_loss: logits are [2, 3], labels [2]\n    give the number of one class for each row");
  EXPECT_EQ(test::refusal([&] { question_answering_loss(classes, classes, longs({0}, {1}), longs({0}, {1})); }),
            "question_answering_loss: logits are [2, 3], positions [1]\n    give logits [batch, length] and positions "
            "[batch]");
}

}  // namespace
}  // namespace easydel::train
