// Parts of decoders by themselves: sizes, embeddings, norms of heads.
#include "easydel/models/decoder_parts.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::models {
namespace {

TEST(LayerSizes, AreTheLayersOwnElseTheModels) {
  DecoderSpec spec;
  spec.heads = 8, spec.kv_heads = 4, spec.head_dim = 16, spec.intermediate = 64;
  spec.layers.resize(2);
  spec.layers[1].sizes = {.kv_heads = 2, .v_dim = 12};
  const LayerSizes usual = sizes_of(spec, 0), own = sizes_of(spec, 1);
  EXPECT_EQ(usual.kv_heads, 4);
  EXPECT_EQ(usual.v_dim, 16);
  EXPECT_EQ(own.heads, 8);
  EXPECT_EQ(own.kv_heads, 2);
  EXPECT_EQ(own.v_dim, 12);
  EXPECT_EQ(own.intermediate, 64);
}

TEST(CountedPositions, AreThoseOfTheTokensThatCount) {
  nn::Stream stream;
  stream.cu_seqlens = {0, 4, 6};
  stream.positions = at::tensor({0, 1, 2, 3, 5, 6}, at::kLong);  // the second sequence continues from a cache
  const Tensor counts = at::tensor({1, 1, 0, 1, 0, 1}, at::kLong);
  EXPECT_TRUE(counted_positions(counts, stream).equal(at::tensor({0, 1, -1, 2, -1, 5}, at::kLong)));
}

TEST(Halves, AreContiguous) {
  const auto [first, second] = halves(at::arange(8).view({2, 4}));
  EXPECT_TRUE(first.is_contiguous() && second.is_contiguous());
  EXPECT_TRUE(first.equal(at::tensor({0, 1, 4, 5}, at::kLong).view({2, 2})));
  EXPECT_TRUE(second.equal(at::tensor({2, 3, 6, 7}, at::kLong).view({2, 2})));
}

TEST(NormOfEachHead, HasAWeightForEachHead) {
  const Tensor x = at::ones({1, 2, 4}) * 3, weight = at::tensor({1.0f, 2.0f}).view({2, 1}).expand({2, 4});
  const Tensor normed = norm_of_each_head(x, weight, {.kind = nn::NormKind::rms, .epsilon = 0.0});
  EXPECT_TRUE(normed.select(1, 0).equal(at::ones({1, 4})));
  EXPECT_TRUE(normed.select(1, 1).equal(at::ones({1, 4}) * 2));
}

TEST(BuildEmbedding, AddsLearnedPositionsToTheScaledTable) {
  nn::ParameterTable table;
  nn::Building building{table, at::kFloat, collective::Team::alone(), {}, {}, {}, {}, {}};
  building.fill = [](nn::Entry& entry, const nn::Initial&, const std::vector<nn::TensorSource>&) {
    const bool positions = entry.path.find("wpe") != std::string::npos;
    entry.shard = at::arange(entry.shape[0], at::TensorOptions().dtype(at::kFloat)).unsqueeze(1).expand(entry.shape) *
                  (positions ? 100.0 : 1.0);
  };
  DecoderSpec spec;
  spec.vocabulary = 8, spec.hidden = 2, spec.max_positions = 4, spec.embedding_multiplier = 10.0;
  spec.learned_positions = true;
  const auto embedding = build_embedding(nn::Scope(building) / "model", spec);
  nn::Pass pass = nn::Pass::over({0, 3});
  const Tensor x = (*embedding)({at::tensor({5, 0, 7}, at::kLong)}, pass);
  EXPECT_TRUE(x.select(1, 0).equal(at::tensor({50.0f, 100.0f, 270.0f})));
  EXPECT_EQ(embedding->table().entry().path, "model.embed_tokens.weight");
  EXPECT_TRUE(embedding->leave(x, pass).is_same(x));
}

// GPT-2's checkpoints hold the weights of blocks, and of nothing else, as [in, out].
TEST(TransposedWeights, AreThoseOfBlocks) {
  const auto model = load_model(test::test_data("hf_goldens/gpt2"), {});
  const auto transposed = [&](const char* path) { return model->parameters().find(path)->source.transposed; };
  EXPECT_TRUE(transposed("transformer.h.0.attn.c_attn.weight"));
  EXPECT_TRUE(transposed("transformer.h.0.mlp.c_proj.weight"));
  EXPECT_FALSE(transposed("transformer.wte.weight"));
}

}  // namespace
}  // namespace easydel::models
