// The selective state space mixers: their recurrence by hand, and texts that arrive in pieces.
#include "easydel/nn/mamba.h"

#include <ATen/ops/conv1d.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "nn/mixer_in_pieces.h"

namespace easydel::nn {
namespace {

TEST(Mamba, IsItsRecurrence) {
  Built built;
  MambaSpec spec;
  spec.hidden = 6, spec.inner = 8, spec.state = 4, spec.rank = 3, spec.deviation = 0.5;
  const Mamba mixer(built.scope(), spec, 0);
  for (const char* name : {"A_log", "D", "dt_proj.bias", "conv1d.bias"})
    built.entry(name).shard.copy_(random_values(built.entry(name).shape, name));
  const Tensor out = expect_same_in_pieces(mixer, 6);

  const auto value = [&](const char* name) { return built.entry(name).shard; };
  const Tensor x = random_values({14, 6}, "x").slice(0, 0, 9);
  const Tensor both = x.matmul(value("in_proj.weight").t()), gate = both.slice(1, 8);
  const Tensor wide =
      at::conv1d(both.slice(1, 0, 8).t().unsqueeze(0), value("conv1d.weight"), value("conv1d.bias"), 1, 3, 1, 8);
  const Tensor u = at::silu(wide.squeeze(0).slice(1, 0, 9)).t();
  const Tensor parts = u.matmul(value("x_proj.weight").t());
  const Tensor step = at::softplus(parts.slice(1, 0, 3).matmul(value("dt_proj.weight").t()) + value("dt_proj.bias"));
  const Tensor rates = -value("A_log").exp();
  Tensor state = at::zeros({8, 4});
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < 9; ++t) {
    const Tensor dt = step[t].unsqueeze(1), b = parts[t].slice(0, 3, 7), c = parts[t].slice(0, 7);
    state = (dt * rates).exp() * state + dt * u[t].unsqueeze(1) * b.unsqueeze(0);
    rows.push_back(state.matmul(c) + value("D") * u[t]);
  }
  const Tensor y = at::stack(rows) * at::silu(gate);
  EXPECT_TRUE(out.slice(0, 0, 9).allclose(y.matmul(value("out_proj.weight").t()), 1e-4, 1e-4));
}

TEST(Mamba2, ReadsATextInPiecesAsAWhole) {
  Built built;
  Mamba2Spec spec;
  spec.hidden = 6, spec.inner = 16, spec.heads = 4, spec.head_dim = 4, spec.state = 8, spec.groups = 2;
  spec.deviation = 0.5;
  const Mamba2 mixer(built.scope(), spec, 0);
  const Tensor out = expect_same_in_pieces(mixer, 6);
  EXPECT_GT(out.abs().max().item<float>(), 1e-3f);
}

}  // namespace
}  // namespace easydel::nn
