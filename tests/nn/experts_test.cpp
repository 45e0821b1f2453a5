// Experts: three ways to compute them, gradients, independence of a token from its company, and what their weights can
// ask about rows.
#include "easydel/nn/experts.h"
#include "easydel/base/error.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "easydel/nn/weight.h"
#include "easydel/nn/weight_forms.h"
#include "easydel/tensor/random.h"

namespace easydel::nn {
namespace {

constexpr int64_t tokens = 13, experts = 5, size = 12, inner = 9, top_k = 2;

Tensor random(std::vector<int64_t> shape, const char* name) {
  Tensor out = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  tensor::fill_normal(out, tensor::key_of(7, name), 0.5, shape, std::vector<int64_t>(shape.size(), 0));
  return out;
}

// Experts of a table of their own, all with the same weights.
struct Made {
  ParameterTable table;
  std::unique_ptr<Experts> layer;

  explicit Made(ops::MoeMethod method, ExpertsSpec spec = {}, at::ScalarType compute = at::kFloat) {
    Building building{table, compute, collective::Team::alone(), {}, {}, {}, {}, {}};
    building.moe_method = method;
    building.fill = [](Entry& entry, const Initial&, const std::vector<TensorSource>&) {
      entry.shard = random(entry.shape, entry.path.c_str());
      entry.shard.set_requires_grad(true);
    };
    spec.experts = experts, spec.size = size, spec.inner = inner;
    layer = std::make_unique<Experts>(Scope(building) / "mlp", spec);
  }
  Tensor weight(const char* name) { return table.find(str("mlp.experts.", name))->shard; }
};

// Choices in which expert 3 has none and expert 0 many.
Tensor choices() {
  std::vector<int64_t> all;
  for (int64_t t = 0; t < tokens; ++t)
    all.insert(all.end(), {t % 3 == 0 ? int64_t(0) : 4, t % 2 == 0 ? int64_t(1) : 2});
  return at::tensor(all).view({tokens, top_k});
}

struct Result {
  Tensor y;
  std::vector<Tensor> gradients;  // of x, of the weights of choices, of the parameters
};

Result run(ops::MoeMethod method, const ExpertsSpec& spec = {}) {
  Made made(method, spec);
  Tensor x = random({tokens, size}, "x"), weights = random({tokens, top_k}, "weights").abs();
  x.set_requires_grad(true), weights.set_requires_grad(true);
  Pass pass = Pass::over({0, tokens});
  Result out;
  out.y = (*made.layer)(x, choices(), weights, pass);
  (out.y * random({tokens, size}, "direction")).sum().backward();
  out.gradients = {x.grad(), weights.grad()};
  for (const Entry& entry : made.table.entries()) out.gradients.push_back(entry.shard.grad());
  return out;
}

TEST(Experts, HaveTheSameBitsInEveryWayToComputeThem) {
  ExpertsSpec clamped;
  clamped.bias = true;
  clamped.clamp_limit = 0.7;
  for (ExpertFiles& files : clamped.files) files.gate_bias = "a", files.up_bias = "b", files.down_bias = "c";
  ExpertsSpec plain_mlp;
  plain_mlp.gated = false;
  plain_mlp.activation = ops::Activation::relu_squared;
  ExpertsSpec weighed;
  weighed.weigh_input = true;
  for (const ExpertsSpec& spec : {ExpertsSpec{}, clamped, plain_mlp, weighed}) {
    const Result fused = run(ops::MoeMethod::fused_moe, spec);
    for (const auto method : {ops::MoeMethod::standard_moe, ops::MoeMethod::dense_moe}) {
      const Result other = run(method, spec);
      EXPECT_TRUE(fused.y.equal(other.y));
      ASSERT_EQ(fused.gradients.size(), other.gradients.size());
      for (size_t i = 0; i < fused.gradients.size(); ++i)
        EXPECT_TRUE(fused.gradients[i].allclose(other.gradients[i], 1e-5, 1e-6)) << i;
    }
  }
}

TEST(Experts, AreWhatTheirFormulaSays) {
  Made made(ops::MoeMethod::fused_moe);
  const Tensor x = random({tokens, size}, "x"), weights = random({tokens, top_k}, "weights").abs(), chosen = choices();
  Pass pass = Pass::over({0, tokens});
  const Tensor y = (*made.layer)(x, chosen, weights, pass).detach();
  for (int64_t t = 0; t < tokens; ++t) {
    Tensor sum = at::zeros_like(x[t]);
    for (int64_t slot = 0; slot < top_k; ++slot) {
      const auto e = chosen[t][slot].item<int64_t>();
      const Tensor gate = at::matmul(made.weight("gate_proj.weight")[e], x[t]);
      const Tensor up = at::matmul(made.weight("up_proj.weight")[e], x[t]);
      sum = sum + at::matmul(made.weight("down_proj.weight")[e], at::silu(gate) * up) * weights[t][slot];
    }
    EXPECT_TRUE(y[t].allclose(sum, 1e-5, 1e-5)) << t;
  }
}

TEST(Experts, GiveATokenTheSameBitsWhoeverSharesItsExperts) {
  Made made(ops::MoeMethod::fused_moe);
  const at::NoGradGuard no_gradient;
  const Tensor x = random({tokens, size}, "x"), weights = random({tokens, top_k}, "weights").abs(), chosen = choices();
  Pass all = Pass::over({0, tokens});
  const Tensor together = (*made.layer)(x, chosen, weights, all);
  for (int64_t t = 0; t < tokens; ++t) {
    Pass one = Pass::over({0, 1});
    const auto row = [&](const Tensor& of) { return of.narrow(0, t, 1); };
    EXPECT_TRUE((*made.layer)(row(x), row(chosen), row(weights), one).equal(row(together))) << t;
  }
}

TEST(Experts, WithoutTokensGetNoGradient) {
  Made made(ops::MoeMethod::fused_moe);
  Pass pass = Pass::over({0, tokens});
  (*made.layer)(random({tokens, size}, "x"), choices(), random({tokens, top_k}, "weights"), pass).sum().backward();
  EXPECT_EQ(made.weight("up_proj.weight").grad()[3].abs().max().item<float>(), 0.0f);
  EXPECT_GT(made.weight("up_proj.weight").grad()[4].abs().max().item<float>(), 0.0f);
}

TEST(Experts, ReadTheCopyThatAnOptimizerWroteWithTheMaster) {
  Made made(ops::MoeMethod::fused_moe, {}, at::kBFloat16);
  const Tensor x = random({tokens, size}, "x").to(at::kBFloat16), weights = random({tokens, top_k}, "weights");
  const auto read = [&] {
    Pass pass = Pass::over({0, tokens});
    return (*made.layer)(x, choices(), weights, pass).detach();
  };
  const Tensor before = read();
  Entry& entry = *made.table.find("mlp.experts.down_proj.weight");
  const Tensor copy = entry.forms->copy();
  EXPECT_TRUE(copy.equal(entry.shard.detach().to(at::kBFloat16)));
  copy.zero_();
  entry.written();
  EXPECT_FALSE(entry.forms->copy().defined());  // it is of the master before
  entry.forms->copied();
  EXPECT_EQ(read().abs().max().item<float>(), 0.0f);
  entry.written();
  EXPECT_TRUE(read().equal(before));  // created again
  EXPECT_FALSE(Made(ops::MoeMethod::fused_moe).table.find("mlp.experts.down_proj.weight")->forms->copy().defined());
}

TEST(Experts, ThatGiveBackWhatTheyReadCountToo) {
  ExpertsSpec spec;
  spec.identities = 1;
  Made made(ops::MoeMethod::fused_moe, spec);
  const at::NoGradGuard no_gradient;
  const Tensor x = random({1, size}, "x");
  Pass pass = Pass::over({0, 1});
  const Tensor y = (*made.layer)(x, at::tensor({experts, experts}).to(at::kLong).view({1, 2}),
                                 at::tensor({0.25f, 0.5f}).view({1, 2}), pass);
  EXPECT_TRUE(y.allclose(x * 0.75));
}

// A stack that multiplies as `base` does, and sees which tokens and sequences its rows are of.
struct Asking final : WeightStack {
  std::shared_ptr<WeightStack> base;
  Tensor x, tokens, sequences;
  Tensor product(const Tensor& rows, const std::vector<int64_t>& begin, const Tensor& bias, Pass& pass) override {
    x = rows, tokens = pass.stream().row_tokens(rows.size(0)), sequences = pass.stream().row_sequences(rows.size(0));
    return base->product(rows, begin, bias, pass);
  }
};

void expect_known_rows(ops::MoeMethod method, int64_t identities, const std::vector<int64_t>& requested) {
  ExpertsSpec spec;
  spec.identities = identities;
  Made made(method, spec);
  const at::NoGradGuard no_gradient;
  Pass pass = Pass::over({0, 5, 6, tokens});
  pass.stream().requested = requested;
  // Every element of a token's row is the token's index.
  const Tensor numbered = at::arange(tokens, at::kFloat).view({tokens, 1}).expand({tokens, size});
  const Tensor x = pass.stream().requested_rows(numbered).contiguous();
  const Tensor chosen = pass.stream().requested_rows(choices()).contiguous() + identities;
  const auto asking = [&](const char* name) {
    auto out = std::make_shared<Asking>();
    Entry& entry = *made.table.find(str("mlp.experts.", name, ".weight"));
    out->base = entry.stack;
    entry.stack = out;
    return out;
  };
  const auto up = asking("up_proj"), down = asking("down_proj");
  (*made.layer)(x, chosen, random({x.size(0), top_k}, "weights"), pass);
  const Tensor of = up->x.select(1, 0).to(at::kLong);
  EXPECT_TRUE(up->tokens.equal(of));
  EXPECT_TRUE(up->sequences.equal(of.ge(5).to(at::kLong) + of.ge(6)));
  EXPECT_TRUE(down->tokens.equal(of));
  EXPECT_TRUE(down->sequences.equal(up->sequences));
}

TEST(Experts, HaveWeightsThatCanAskWhichTokenAndSequenceARowIsOf) {
  for (const auto method : {ops::MoeMethod::fused_moe, ops::MoeMethod::standard_moe, ops::MoeMethod::dense_moe})
    for (const int64_t identities : {0, 1})
      for (const std::vector<int64_t>& requested : {std::vector<int64_t>{}, {1, 0, 3}})
        expect_known_rows(method, identities, requested);
}

}  // namespace
}  // namespace easydel::nn
