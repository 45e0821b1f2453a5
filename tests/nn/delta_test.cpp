// The mixers by the gated delta rule: their recurrence by hand, texts that arrive in pieces, and fused projections.
#include "easydel/nn/delta.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nn/mixer_in_pieces.h"

namespace easydel::nn {
namespace {

DeltaSpec delta_spec(int64_t k_heads) {
  DeltaSpec spec;
  spec.hidden = 6, spec.k_heads = k_heads, spec.v_heads = 4, spec.k_dim = 8, spec.v_dim = 8, spec.deviation = 0.5;
  spec.output_deviation = 0.5;
  return spec;
}

// Rows of a fused projection: of each key head in turn its rows of all the parts.
Tensor fused(const std::vector<Tensor>& parts, int64_t heads) {
  std::vector<Tensor> rows;
  for (int64_t head = 0; head < heads; ++head)
    for (const Tensor& part : parts) {
      const int64_t count = part.size(0) / heads;
      rows.push_back(part.narrow(0, head * count, count));
    }
  return at::cat(rows);
}

TEST(GatedDelta, ReadsATextInPiecesAsAWholeAndFusedProjectionsAsOthers) {
  Built plain, together;
  const DeltaSpec spec = delta_spec(2);
  const GatedDelta mixer(plain.scope(), spec, false, 0), other(together.scope(), spec, true, 0);
  const Tensor out = expect_same_in_pieces(mixer, 6);
  EXPECT_GT(out.abs().max().item<float>(), 1e-3f);

  const auto value = [&](const char* name) { return plain.entry(name).shard; };
  const Tensor qkv = value("in_proj_qkv.weight");
  together.entry("in_proj_qkvz.weight")
      .shard.copy_(fused({qkv.slice(0, 0, 16), qkv.slice(0, 16, 32), qkv.slice(0, 32), value("in_proj_z.weight")}, 2));
  together.entry("in_proj_ba.weight").shard.copy_(fused({value("in_proj_b.weight"), value("in_proj_a.weight")}, 2));
  for (const char* name : {"conv1d.weight", "dt_bias", "A_log", "norm.weight", "out_proj.weight"})
    together.entry(name).shard.copy_(value(name));
  EXPECT_TRUE(expect_same_in_pieces(other, 6).allclose(out, 1e-5, 1e-5));
}

TEST(KimiDelta, IsItsRecurrence) {
  Built built;
  const DeltaSpec spec = delta_spec(4);
  const KimiDelta mixer(built.scope(), spec, 0);
  for (const char* name : {"A_log", "dt_bias", "o_norm.weight"})
    built.entry(name).shard.copy_(random_values(built.entry(name).shape, name));
  const Tensor out = expect_same_in_pieces(mixer, 6);

  const Tensor x = random_values({14, 6}, "x").slice(0, 0, 9);
  const auto value = [&](const std::string& name) { return built.entry(name.c_str()).shard; };
  const auto linear = [&](const Tensor& of, const std::string& name) {
    return of.matmul(value(name + "_proj.weight").t());
  };
  const auto mixed = [&](const std::string& name) {
    const Tensor wide =
        at::conv1d(linear(x, name).t().unsqueeze(0), value(name + "_conv1d.weight"), {}, 1, 3, 1, 32).squeeze(0);
    return at::silu(wide.slice(1, 0, 9)).t().reshape({9, 4, 8});
  };
  const auto unit = [](const Tensor& of) { return of * (of.square().sum(2, true) + 1e-6).rsqrt(); };
  const Tensor q = unit(mixed("q")) / std::sqrt(8.0), k = unit(mixed("k")), v = mixed("v");
  const Tensor beta = at::sigmoid(linear(x, "b"));
  const Tensor steps = at::softplus((linear(linear(x, "f_a"), "f_b") + value("dt_bias")).view({9, 4, 8}));
  const Tensor decays = (-value("A_log").exp().view({1, 4, 1}) * steps).exp();
  std::vector<Tensor> state(4, at::zeros({8, 8})), rows;
  for (int64_t t = 0; t < 9; ++t)
    for (int64_t h = 0; h < 4; ++h) {
      Tensor& own = state[size_t(h)];
      own = decays[t][h].unsqueeze(1) * own;
      const Tensor missing = v[t][h] - k[t][h].matmul(own);
      own = own + k[t][h].unsqueeze(1) * (beta[t][h] * missing).unsqueeze(0);
      rows.push_back(q[t][h].matmul(own));
    }
  const Tensor read = at::stack(rows).view({9, 4, 8});
  const Tensor normed = read * (read.square().mean(2, true) + spec.epsilon).rsqrt() * value("o_norm.weight");
  const Tensor gate = at::sigmoid(linear(linear(x, "g_a"), "g_b"));
  EXPECT_TRUE(out.slice(0, 0, 9).allclose(linear(normed.reshape({9, 32}) * gate, "o"), 1e-4, 1e-4));
}

}  // namespace
}  // namespace easydel::nn
