// Gradients of collectives, against the same computation on one rank.
#include "easydel/collective/autograd.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "support/ranks.h"

namespace easydel::collective {
namespace {

using test::Meeting;
using test::run_ranks;

std::shared_ptr<const Team> join(const Meeting& meeting, std::vector<int64_t> sizes) {
  TeamOptions options;
  options.file_store = meeting.file;
  options.connect_seconds = options.timeout_seconds = 30;
  return Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), std::move(sizes)), options);
}

Tensor numbers(std::vector<int64_t> shape, double seed) {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  return (at::arange(count, at::kFloat) * 0.7 + seed).sin().view(shape);
}

double distance(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

// x [tokens, 6] through a column-parallel and a row-parallel product: y = gelu(x A^T) B^T.
TEST(CollectiveGradients, ColumnThenRowParallelProductsEqualOneRank) {
  run_ranks(2, [](const Meeting& meeting) {
    Group tp = join(meeting, {1, 1, 1, 2, 1})->group({"tp"});
    Tensor a = numbers({8, 6}, 1), b = numbers({6, 8}, 2);
    Tensor x1 = numbers({5, 6}, 3).requires_grad_(true), x2 = numbers({5, 6}, 3).requires_grad_(true);
    Tensor a1 = a.clone().requires_grad_(true);
    Tensor expected = at::linear(at::linear(x1, a1).tanh(), b);
    expected.pow(2).sum().backward();

    Tensor a2 = tp.part(a, 0).clone().requires_grad_(true);
    Tensor y = leave(tp, at::linear(at::linear(enter(tp, x2), a2).tanh(), tp.part(b, 1)));
    y.pow(2).sum().backward();
    EXPECT_LT(distance(y, expected), 1e-5);
    EXPECT_LT(distance(x2.grad(), x1.grad()), 1e-4);
    EXPECT_LT(distance(a2.grad(), tp.part(a1.grad(), 0)), 1e-4);
  });
}

// A weight in shards, each rank with its own rows: the shard's gradient is the sum over all rows.
TEST(CollectiveGradients, GatherSumsWhereRanksHaveTheirOwnRows) {
  run_ranks(2, [](const Meeting& meeting) {
    Group fsdp = join(meeting, {1, 2, 1, 1, 1})->group({"fsdp"});
    Tensor w = numbers({4, 6}, 1), x = numbers({6, 6}, 2);
    Tensor w1 = w.clone().requires_grad_(true);
    at::linear(x, w1).pow(2).sum().backward();

    Tensor shard = fsdp.part(w, 1).clone().requires_grad_(true);
    at::linear(fsdp.part(x, 0), gather(fsdp, shard, 1, GatherGradient::sum)).pow(2).sum().backward();
    EXPECT_LT(distance(shard.grad(), fsdp.part(w1.grad(), 1)), 1e-4);
  });
}

TEST(CollectiveGradients, GatherKeepsItsPartWhereRanksComputeTheSame) {
  run_ranks(2, [](const Meeting& meeting) {
    Group tp = join(meeting, {1, 1, 1, 2, 1})->group({"tp"});
    Tensor w = numbers({4, 6}, 1), x = numbers({3, 6}, 2);
    Tensor w1 = w.clone().requires_grad_(true);
    at::linear(x, w1).pow(2).sum().backward();

    Tensor shard = tp.part(w, 0).clone().requires_grad_(true);
    at::linear(x, gather(tp, shard, 0, GatherGradient::same)).pow(2).sum().backward();
    EXPECT_LT(distance(shard.grad(), tp.part(w1.grad(), 0)), 1e-5);
    // and scatter is its mirror
    Tensor whole = w.clone().requires_grad_(true);
    scatter(tp, whole, 0).pow(2).sum().backward();
    EXPECT_LT(distance(whole.grad(), w * 2), 1e-6);
  });
}

// An fp32 shard gathered as bf16: the sum over ranks is taken in fp32.
TEST(CollectiveGradients, SumsTheGradientsOfABf16GatherInTheShardsType) {
  run_ranks(2, [](const Meeting& meeting) {
    auto team = join(meeting, {1, 2, 1, 1, 1});
    Group fsdp = team->group({"fsdp"});
    Tensor shard = at::zeros({2}).requires_grad_(true);
    Tensor value = gather(fsdp, shard, 0, GatherGradient::sum, at::kBFloat16);
    EXPECT_EQ(value.scalar_type(), at::kBFloat16);
    value.backward((at::zeros({4}) + (team->rank() == 0 ? 256 : 1)).to(at::kBFloat16));
    EXPECT_EQ(shard.grad().scalar_type(), at::kFloat);
    EXPECT_EQ(shard.grad()[0].item<float>(), 257.f);  // bf16 would give 256
  });
}

}  // namespace
}  // namespace easydel::collective
