// Latent attention: prompts in pieces, generated tokens in the latent space, and the choices of the indexer.
#include "easydel/nn/mla.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "easydel/nn/indexer.h"
#include "nn/mixer_in_pieces.h"

namespace easydel::nn {
namespace {

MlaSpec mla_spec() {
  MlaSpec spec;
  spec.size = 6, spec.heads = 3, spec.kv_rank = 8, spec.plain_dim = 4, spec.rope_dim = 4, spec.v_dim = 6;
  spec.scale = 0.4, spec.deviation = spec.output_deviation = 0.5;
  auto rope = std::make_shared<ops::RopeSpec>();
  rope->dim = 4;
  spec.rope = rope;
  return spec;
}

// The pieces of the helper are prompt; here the tokens after the fourth are generated, and so absorbed.
Tensor absorbed(const Layer& mixer, const Tensor& x) {
  const at::NoGradGuard no_gradient;
  CacheShape shape;
  shape.layers = {mixer.cache()};
  Cache cache(shape, 1, 9, 4);
  std::vector<Tensor> found;
  for (const auto& [begin, count] : {std::pair{0, 4}, {4, 1}, {5, 4}}) {
    const auto memory = cache.next({0}, {count});
    Pass pass = Pass::next(*memory, {4});
    found.push_back(mixer.forward(x.narrow(0, begin, count), pass).x);
    pass.finish();
  }
  return at::cat(found);
}

TEST(Mla, GivesGeneratedTokensInTheLatentSpaceWhatPromptsGet) {
  for (const int64_t q_rank : {0, 5}) {
    Built built;
    MlaSpec spec = mla_spec();
    spec.q_rank = q_rank;
    const auto mixer = build_mla(built.scope(), spec, 0);
    const Tensor out = expect_same_in_pieces(*mixer, 6).slice(0, 0, 9);
    EXPECT_GT(out.abs().max().item<float>(), 1e-3f);
    EXPECT_TRUE(absorbed(*mixer, random_values({14, 6}, "x").slice(0, 0, 9)).allclose(out, 1e-4, 1e-4)) << q_rank;
  }
}

TEST(Indexer, ChoosesTheEarlierKeysThatScoreBest) {
  Built built;
  MlaSpec spec = mla_spec();
  spec.q_rank = 5, spec.index_heads = 2, spec.index_dim = 4, spec.index_top = 2, spec.index_rope = spec.rope;
  const Indexer indexer(built.scope(), spec);
  // One-dimensional in effect: key k has value values[k], every query asks for large ones.
  const Tensor values = at::tensor({3.0f, 1.0f, 2.0f, 5.0f});
  Tensor keys = values.unsqueeze(1).repeat({1, 4});
  Indexer::Query query{at::ones({3, 2, 4}), at::ones({3, 2})};
  // Three rows of the last tokens, 1, 2 and 3.
  const auto choices = indexer.choose(query, keys, {});
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_TRUE(choices[0].keys.equal(at::tensor({0, 1}, at::kLong)));
  EXPECT_TRUE(choices[1].keys.equal(at::tensor({0, 2}, at::kLong)));
  EXPECT_TRUE(choices[2].keys.equal(at::tensor({0, 3}, at::kLong)));
  // Masked keys are not chosen; a row without any key has all, and says so.
  const auto some = indexer.choose(query, keys, at::tensor({1, 1, 0, 0}, at::kLong).to(at::kBool));
  EXPECT_TRUE(some[0].fully_masked);
  EXPECT_TRUE(some[1].keys.equal(at::tensor({2}, at::kLong)));
  EXPECT_TRUE(some[2].keys.equal(at::tensor({2, 3}, at::kLong)));
}

}  // namespace
}  // namespace easydel::nn
