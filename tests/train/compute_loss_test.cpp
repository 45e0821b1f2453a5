#include "easydel/train/compute_loss.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::train {
namespace {

Tensor longs(std::vector<int64_t> values, at::IntArrayRef shape) {
  return at::tensor(values, at::TensorOptions().dtype(at::kLong)).view(shape);
}

TEST(ComputeLoss, IsTheLossOfTheModelsLogitsWithoutMakingThem) {
  models::LoadOptions options;
  options.dtype = options.param_dtype = models::DTypeSetting::fp32;
  options.training = true;
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), options);
  LossInputs inputs;
  inputs.tokens = longs({1, 403, 407, 261, 378, 31, 1, 410, 300, 400, 0, 0}, {2, 6});
  inputs.attention_mask = longs({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, {2, 6});
  inputs.labels = inputs.tokens.clone();
  inputs.labels[0][1] = -100;
  nn::Pass pass = nn::Pass::over({0, 6, 10});
  Tensor logits = at::zeros({2, 6, model->vocabulary()});
  const Tensor flat = model->head().logits(
      model->forward({inputs.tokens.masked_select(inputs.attention_mask.ne(0))}, pass).hidden.detach(), pass);
  logits[0].copy_(flat.slice(0, 0, 6));
  logits[1].slice(0, 0, 4).copy_(flat.slice(0, 6, 10));
  using enum Normalizer;
  for (const LossConfig& config :
       {LossConfig{}, LossConfig{.label_smoothing = 0.1, .z_loss = 0.01},
        LossConfig{.loss_normalizing_factor = average_per_sequence},
        LossConfig{.loss_normalizing_factor = total_target_tokens}, LossConfig{.reduction = Reduction::none},
        LossConfig{.divide_weight_sum = true}, LossConfig{.chunk_token_size = 3}}) {
    const LossMetrics whole =
        causal_lm_loss(logits, {.labels = inputs.labels, .attention_mask = inputs.attention_mask}, config);
    const LossMetrics found = compute_loss(*model, inputs, config).metrics;
    for (const auto member :
         {&LossMetrics::loss, &LossMetrics::z_loss, &LossMetrics::weight_sum, &LossMetrics::accuracy})
      EXPECT_TRUE((found.*member).allclose(whole.*member, 1e-5, 1e-6));
  }
  compute_loss(*model, inputs).metrics.loss.backward();
  for (const nn::Entry& entry : model->parameters().entries()) EXPECT_TRUE(entry.shard.grad().defined()) << entry.path;
  EXPECT_EQ(test::refusal([&] { compute_loss(*model, {.tokens = longs({1}, {1})}); }),
            "compute_loss: there are no tokens\n    give tokens [batch, length]");
  EXPECT_EQ(test::refusal([&] {
              compute_loss(*model, {.tokens = longs({1, 2}, {1, 2}), .labels = longs({1}, {1, 1})});
            }),
            "compute_loss: tokens are [1, 2], labels [1, 1], the mask [1, 2]\n    give all of them as [batch, length]");
}

}  // namespace
}  // namespace easydel::train
