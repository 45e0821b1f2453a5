// The output layer of masked language models, tied and untied.
#include "easydel/nn/masked_head.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <gtest/gtest.h>

#include "nn/built.h"

namespace easydel::nn {
namespace {

MaskedHeadSpec masked_spec() {
  MaskedHeadSpec spec;
  spec.dense = "cls.transform.dense", spec.norm = "cls.transform.LayerNorm", spec.decoder = "cls.decoder";
  spec.shared_bias = "cls.bias";
  spec.norm_options = {.kind = NormKind::layer, .epsilon = 1e-5, .bias = true};
  return spec;
}

Tensor features_of(Built& built, const Tensor& x) {
  const auto value = [&](const char* name) { return built.entry(name).shard; };
  const Tensor dense = at::addmm(value("cls.transform.dense.bias"), x, value("cls.transform.dense.weight").t());
  return at::layer_norm(at::gelu(dense), {x.size(1)}, value("cls.transform.LayerNorm.weight"),
                        value("cls.transform.LayerNorm.bias"), 1e-5);
}

TEST(MaskedHead, HasAnOutputOfItsOwnOrTheEmbeddings) {
  for (const bool is_tied : {false, true}) {
    Built built;
    Parameter tied;
    if (is_tied) tied = built.scope().parameter("embedding", {11, 8}, Role::embedding, {.initial = Initial::normal(1)});
    const MaskedHead head(built.scope(), 11, 8, masked_spec(), tied);
    const char* const bias = is_tied ? "cls.bias" : "cls.decoder.bias";
    built.entry(bias).shard.copy_(random_values({11}, "bias"));
    Pass pass = Pass::over({0, 4});
    const Tensor x = random_values({4, 8}, "x"), features = features_of(built, x);
    EXPECT_TRUE(head.features(x, pass).allclose(features, 1e-5, 1e-5));
    const Tensor weight = built.entry(is_tied ? "embedding" : "cls.decoder.weight").shard;
    EXPECT_TRUE(head.logits(x, pass).allclose(at::addmm(built.entry(bias).shard, features, weight.t()), 1e-4, 1e-5));
    EXPECT_EQ(built.table.find("cls.decoder.weight") == nullptr, is_tied);
  }
}

}  // namespace
}  // namespace easydel::nn
