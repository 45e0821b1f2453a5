// Pooling of hidden states, and the scores of classes.
#include "easydel/nn/class_head.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "nn/built.h"

namespace easydel::nn {
namespace {

constexpr int64_t width = 6;
constexpr int64_t pad = 9;

// Two sequences: the first ends with two tokens of padding, the second is padding alone.
Pass padded() { return Pass::over({0, 5, 7}); }
Tensor padded_tokens() { return at::tensor(std::vector<int64_t>{1, 2, 3, pad, pad, pad, pad}, at::kLong); }

TEST(ClassHead, PoolsTheTokenThatTheWordSays) {
  Pass pass = padded();
  const Tensor x = random_values({7, width}, "x"), tokens = padded_tokens();
  EXPECT_TRUE(pool(x, Pooling::none, tokens, pass).equal(x));
  EXPECT_TRUE(pool(x, Pooling::first, tokens, pass).equal(at::stack({x[0], x[5]})));
  EXPECT_TRUE(pool(x, Pooling::last, tokens, pass).equal(at::stack({x[4], x[6]})));
  EXPECT_TRUE(pool(x, Pooling::last, tokens, pass, pad).equal(at::stack({x[2], x[5]})));
  EXPECT_TRUE(
      pool(x, Pooling::mean, tokens, pass).allclose(at::stack({x.slice(0, 0, 5).mean(0), x.slice(0, 5).mean(0)})));
}

TEST(ClassHead, DoesNotPoolMaskedTokens) {
  Pass pass = padded();
  const Tensor x = random_values({7, width}, "x"), tokens = padded_tokens();
  pass.stream().masked = at::tensor({0, 0, 0, 1, 1, 0, 1}, at::kLong).to(at::kBool);
  EXPECT_TRUE(pool(x, Pooling::last, tokens, pass).equal(at::stack({x[2], x[5]})));
  EXPECT_TRUE(pool(x, Pooling::mean, tokens, pass).allclose(at::stack({x.slice(0, 0, 3).mean(0), x[5]})));
}

TEST(ClassHead, IsADenseLayerAndAnOutputLayerOverThePooledRows) {
  Built built;
  ClassHeadSpec spec;
  spec.pooling = Pooling::first;
  spec.dense = "classifier.dense", spec.output = "classifier.out_proj";
  spec.labels = 3;
  const ClassHead head(built.scope(), width, spec);
  Pass pass = padded();
  const Tensor x = random_values({7, width}, "x");
  const auto value = [&](const char* name) { return built.entry(name).shard; };
  const Tensor pooled = at::stack({x[0], x[5]});
  const Tensor dense =
      at::tanh(at::addmm(value("classifier.dense.bias"), pooled, value("classifier.dense.weight").t()));
  const Tensor expected = at::addmm(value("classifier.out_proj.bias"), dense, value("classifier.out_proj.weight").t());
  EXPECT_TRUE(head.scores(x, padded_tokens(), pass).allclose(expected, 1e-5, 1e-5));
  for (const Entry& entry : built.table.entries()) EXPECT_TRUE(entry.head) << entry.path;
}

TEST(ClassHead, DropsAPooledRowByItsTokenWhateverElseIsInThePass) {
  Built built;
  ClassHeadSpec spec;
  spec.pooling = Pooling::last;
  spec.dropout = 0.5;
  const ClassHead head(built.scope(), width, spec);
  const Tensor x = random_values({7, width}, "x").abs() + 1, tokens = padded_tokens();
  const auto scores = [&](std::vector<int64_t> offsets, int64_t first) {
    Pass pass = Pass::over(offsets);
    pass.random().training = true;
    pass.random().first_token = first;
    const int64_t count = offsets.back();
    return head.scores(x.narrow(0, first, count), tokens.narrow(0, first, count), pass);
  };
  const Tensor both = scores({0, 5, 7}, 0);
  EXPECT_TRUE(both.eq(0).any().item<bool>());
  EXPECT_TRUE(both.equal(at::cat({scores({0, 5}, 0), scores({0, 2}, 5)})));
}

}  // namespace
}  // namespace easydel::nn
