// How products read a weight: dense, as codes, by head and in stacks.
#include "easydel/nn/weight.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/nn/layers.h"
#include "easydel/nn/run_layer.h"
#include "easydel/quant/quantize.h"
#include "nn/built.h"

namespace easydel::nn {
namespace {

constexpr int64_t heads = 2, rows_of_head = 12, out = heads * rows_of_head, in = 64, tokens = 5;

struct Dense {
  Built built;
  Entry& entry;
  explicit Dense(bool learns = false)
      : built(at::kFloat, learns),
        entry(built.scope().parameter("weight", {out, in}, Role::weight, {.initial = Initial::normal(0.1)}).entry()) {}
};

Tensor values_of(const ops::Factors& factors) { return ops::multiply(factors.x, factors.weight, {}, at::kFloat); }

TEST(Weight, MultipliesByItsValues) {
  Dense dense;
  Pass pass;
  const Tensor x = random_values({tokens, in}, "x"), bias = random_values({out}, "bias");
  const Tensor expected = at::matmul(x, dense.entry.shard.t());
  const Tensor y = dense.entry.weight->product(x, {}, {}, pass);
  EXPECT_TRUE(y.allclose(expected, 1e-5, 1e-5));
  EXPECT_TRUE(dense.entry.weight->product(x, bias, {}, pass).allclose(expected + bias, 1e-5, 1e-5));
  const auto factors = dense.entry.weight->factors(x, pass);
  ASSERT_EQ(factors.size(), 1u);
  EXPECT_TRUE(values_of(factors[0]).equal(y));
  const Tensor gate = random_values({tokens, in}, "gate");
  EXPECT_TRUE(dense.entry.weight->gated_product(gate, x, ops::Activation::silu, {}, {}, pass)
                  .equal(dense.entry.weight->product(ops::gated(gate, x, ops::Activation::silu), {}, {}, pass)));
}

TEST(Weight, GivesRowsOfAnEmbedding) {
  Dense dense;
  Pass pass;
  const Tensor indices = at::arange(3, at::kLong) * 7;
  EXPECT_TRUE(dense.entry.weight->lookup(indices, -1, pass).equal(dense.entry.shard.index_select(0, indices)));
}

// Each head's rows [first, first + 4), as matmul computes them.
Tensor by_head(const Tensor& values, const Tensor& x, int64_t first, bool transposed) {
  std::vector<Tensor> parts;
  for (int64_t head = 0; head < heads; ++head) {
    const Tensor part = values.narrow(0, head * rows_of_head + first, 4);
    parts.push_back(at::matmul(x.narrow(0, head * tokens, tokens), transposed ? part : part.t()));
  }
  return at::cat(parts);
}

void expect_by_head(const std::shared_ptr<Weight>& weight, const Tensor& values) {
  Pass pass;
  const Tensor low = random_values({heads * tokens, in}, "low"), high = random_values({heads * tokens, 4}, "high");
  const std::vector<int64_t> begin = {0, tokens, 2 * tokens};
  for (const int64_t first : {0, 8}) {
    EXPECT_TRUE(weight->by_head({heads, first, 4, false})
                    ->product(low, begin, {}, pass)
                    .allclose(by_head(values, low, first, false), 1e-5, 1e-5));
    EXPECT_TRUE(weight->by_head({heads, first, 4, true})
                    ->product(high, begin, {}, pass)
                    .allclose(by_head(values, high, first, true), 1e-5, 1e-5));
  }
}

TEST(Weight, IsReadByHead) {
  Dense dense;
  expect_by_head(dense.entry.weight, dense.entry.shard);
}

TEST(Weight, SendsGradientsToItsShardWhenItIsReadByHead) {
  Dense dense(/*learns=*/true);
  Pass pass;
  const Tensor x = random_values({heads * tokens, in}, "low");
  dense.entry.weight->by_head({heads, 8, 4, false})->product(x, {0, tokens, 2 * tokens}, {}, pass).sum().backward();
  const Tensor gradient = dense.entry.shard.grad().view({heads, rows_of_head, in});
  EXPECT_TRUE(gradient.narrow(1, 8, 4)[1][0].allclose(x.narrow(0, tokens, tokens).sum(0), 1e-5, 1e-5));
  EXPECT_EQ(gradient.narrow(1, 0, 8).abs().max().item<float>(), 0.0f);
}

TEST(Weight, OfCodesIsReadInEveryWay) {
  Dense dense;
  Pass pass;
  const auto codes = quant::quantize(dense.entry.shard, quant::format_of({.method = "nf4"}, "quantization"));
  const auto weight = quantized_weight(Parameter(&dense.entry), {{}, {}, nullptr, codes}, at::kFloat);
  const Tensor values = weight->values(), x = random_values({tokens, in}, "x");
  EXPECT_FALSE(values.equal(dense.entry.shard));
  EXPECT_TRUE(weight->product(x, {}, {}, pass).allclose(at::matmul(x, values.t()), 1e-4, 1e-4));
  EXPECT_TRUE(values_of(weight->factors(x, pass).at(0)).equal(weight->product(x, {}, {}, pass)));
  const Tensor indices = at::arange(3, at::kLong);
  EXPECT_TRUE(weight->lookup(indices, -1, pass).equal(values.slice(0, 0, 3)));
  expect_by_head(weight, values);
}

// Adds to each product half of it, by a product of its own.
class Wrapped final : public Weight {
 public:
  explicit Wrapped(std::shared_ptr<Weight> base) : base_(std::move(base)) {}
  Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, Pass& pass) override {
    return base_->product(x, bias, name, pass) + base_->product(x * 0.5, {}, {}, pass);
  }
  std::vector<ops::Factors> factors(const Tensor& x, Pass& pass) override { return base_->factors(x, pass); }
  Tensor lookup(const Tensor& indices, int64_t padding, Pass& pass) override {
    return base_->lookup(indices, padding, pass);
  }
  std::shared_ptr<WeightStack> by_head(const HeadRows& rows) override { return base_->by_head(rows); }

 private:
  std::shared_ptr<Weight> base_;
};

class LinearLayer final : public Layer {
 public:
  explicit LinearLayer(const Scope& scope) : linear_(scope, in, out, {}) {}
  LayerOutput forward(const Tensor& x, Pass& pass) const override {
    return {ops::activate(linear_(x, pass, "mlp_up"), ops::Activation::silu), {}};
  }

 private:
  Linear linear_;
};

// What a policy keeps is the wrapped weight's own product; what is added to it is computed again.
TEST(Weight, ThatWrapsAnotherHasTheSameGradientsWhateverIsKept) {
  Built built(at::kFloat, /*learns=*/true);
  const PlacedLayer layer(
      built.scope().on_stream(text_stream) / "up",
      [](const Scope& scope, int64_t) { return std::make_unique<LinearLayer>(scope); }, 0);
  Entry& entry = built.entry("up.weight");
  entry.weight = std::make_shared<Wrapped>(entry.weight);
  CheckpointPolicy keeps(Checkpointing::save_names);
  keeps.names = {"mlp_up"};
  std::vector<Tensor> gradients;
  for (const CheckpointPolicy& policy :
       {CheckpointPolicy(), CheckpointPolicy(Checkpointing::nothing_saveable), keeps}) {
    Pass pass = Pass::over({0, tokens});
    pass.activations().checkpointing = policy;
    run_layer(pass, layer, random_values({tokens, in}, "x")).x.square().sum().backward();
    gradients.push_back(entry.shard.grad().clone());
    entry.shard.mutable_grad() = Tensor();
  }
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
  EXPECT_TRUE(gradients[0].equal(gradients[2]));
}

TEST(Weight, CanAskWhichSequenceARowBelongsTo) {
  struct Asking final : Weight {
    std::vector<std::vector<int64_t>> seen;
    Tensor product(const Tensor& x, const Tensor&, std::string_view, Pass& pass) override {
      seen.push_back(pass.stream().row_offsets(x.size(0)));
      return x;
    }
    std::vector<ops::Factors> factors(const Tensor&, Pass&) override { return {}; }
    Tensor lookup(const Tensor& indices, int64_t, Pass&) override { return indices; }
    std::shared_ptr<WeightStack> by_head(const HeadRows&) override { return nullptr; }
  };
  Built built;
  const Linear linear(built.scope() / "up", in, in, {});
  const auto asking = std::make_shared<Asking>();
  built.entry("up.weight").weight = asking;
  Pass pass = Pass::over({0, 2, tokens});
  pass.stream().requested = {1, 1};
  const Tensor x = random_values({tokens, in}, "x");
  linear(x, pass, "mlp_up");
  linear(pass.stream().requested_rows(x), pass, "mlp_up");
  EXPECT_EQ(asking->seen, (std::vector<std::vector<int64_t>>{{0, 2, tokens}, {0, 1, 2}}));
}

TEST(Weight, OfAParameterHasNoValuesOfItsOwn) {
  Dense dense;
  EXPECT_THROW((void)dense.entry.weight->values(), Bug);
}

TEST(WeightStack, HasTheSameBitsGroupedAndOneByOne) {
  Built built;
  const Entry& entry =
      built.scope().parameter("weight", {3, out, in}, Role::weight, {.initial = Initial::normal(0.1)}).entry();
  EXPECT_EQ(entry.weight, nullptr);
  Pass pass;
  const Tensor x = random_values({tokens, in}, "x"), bias = random_values({3, out}, "bias");
  const std::vector<int64_t> begin = {0, 2, 2, tokens};
  const Tensor grouped = entry.stack->product(x, begin, bias, pass);
  EXPECT_TRUE(dense_stack(entry.forms, /*grouped=*/false)->product(x, begin, bias, pass).equal(grouped));
  const Tensor last = at::matmul(x.slice(0, 2), entry.shard[2].t()) + bias[2];
  EXPECT_TRUE(grouped.slice(0, 2).allclose(last, 1e-5, 1e-5));
}

}  // namespace
}  // namespace easydel::nn
