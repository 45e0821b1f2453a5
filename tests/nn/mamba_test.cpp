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

TEST(Mamba2, IsItsRecurrence) {
  Built built;
  Mamba2Spec spec;
  spec.hidden = 6, spec.inner = 16, spec.heads = 4, spec.head_dim = 4, spec.state = 8, spec.groups = 2;
  spec.deviation = 0.5;
  const Mamba2 mixer(built.scope(), spec, 0);
  for (const char* name : {"A_log", "D", "dt_bias", "conv1d.bias", "norm.weight"})
    built.entry(name).shard.copy_(random_values(built.entry(name).shape, name));
  const Tensor out = expect_same_in_pieces(mixer, 6);

  const auto value = [&](const char* name) { return built.entry(name).shard; };
  const Tensor x = random_values({14, 6}, "x").slice(0, 0, 9);
  const Tensor all = x.matmul(value("in_proj.weight").t());  // gate, x, B, C, steps
  const Tensor wide =
      at::conv1d(all.slice(1, 16, 64).t().unsqueeze(0), value("conv1d.weight"), value("conv1d.bias"), 1, 3, 1, 48);
  const Tensor mixed = at::silu(wide.squeeze(0).slice(1, 0, 9)).t();
  const Tensor step = at::softplus(all.slice(1, 64) + value("dt_bias")), rates = -value("A_log").exp();
  std::vector<Tensor> state(4, at::zeros({4, 8})), rows;
  for (int64_t t = 0; t < 9; ++t)
    for (int64_t h = 0; h < 4; ++h) {
      const Tensor u = mixed[t].slice(0, 4 * h, 4 * h + 4), dt = step[t][h];
      const int64_t group = h / 2 * 8;
      const Tensor b = mixed[t].slice(0, 16 + group, 24 + group), c = mixed[t].slice(0, 32 + group, 40 + group);
      Tensor& own = state[size_t(h)];
      own = (dt * rates[h]).exp() * own + dt * u.unsqueeze(1) * b.unsqueeze(0);
      rows.push_back(own.matmul(c) + value("D")[h] * u);
    }
  const Tensor gated = at::stack(rows).view({9, 16}) * at::silu(all.slice(1, 0, 16));
  const Tensor groups = gated.view({9, 2, 8});
  const Tensor unit = groups * (groups.square().mean(2, true) + spec.epsilon).rsqrt();
  const Tensor y = unit.view({9, 16}) * value("norm.weight");
  EXPECT_TRUE(out.slice(0, 0, 9).allclose(y.matmul(value("out_proj.weight").t()), 1e-4, 1e-4));
}

}  // namespace
}  // namespace easydel::nn
