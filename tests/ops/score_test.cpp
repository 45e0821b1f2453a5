#include "easydel/ops/score.h"

#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "easydel/ops/activation.h"
#include "easydel/ops/logit_chunks.h"
#include "ops/head_codes.h"
#include "support/memory.h"

namespace easydel::ops {
namespace {

struct Case {
  Tensor hidden = at::randn({23, 12}).requires_grad_(true);
  Tensor weight = (at::randn({41, 12}) * 0.3).requires_grad_(true);
  Tensor labels = at::randint(0, 41, {23}, at::TensorOptions().dtype(at::kLong));
  Tensor hidden_again = hidden.detach().clone().requires_grad_(true);
  Tensor weight_again = weight.detach().clone().requires_grad_(true);
};

TEST(Score, EqualsTheWholeMatrixOfLogitsWithItsGradients) {
  Case c;
  ScoreRequest request;
  request.temperature = 0.7;
  request.uniform = request.log_normalizer = request.entropy = request.correct = request.mean_logit = true;
  request.chunk = 5;
  const ScoreResult found = score(c.hidden, {c.weight, c.weight, nullptr}, {}, c.labels, request);

  const Tensor logits = at::matmul(c.hidden_again, c.weight_again.t()) / 0.7;
  const Tensor all = at::log_softmax(logits, 1), own = all.gather(1, c.labels.unsqueeze(1)).squeeze(1);
  const Tensor normalizer = logits.logsumexp({1});
  EXPECT_TRUE(found.logps.allclose(own, 1e-5, 1e-5));
  EXPECT_TRUE(found.uniform.allclose(all.mean(1), 1e-5, 1e-5));
  EXPECT_TRUE(found.log_normalizer.allclose(normalizer, 1e-5, 1e-5));
  EXPECT_TRUE(found.entropy.allclose(-(all.exp() * all).sum(1), 1e-4, 1e-5));
  EXPECT_TRUE(found.correct.equal(logits.argmax(1) == c.labels));
  EXPECT_TRUE(found.mean_logit.allclose(logits.mean(1), 1e-4, 1e-5));

  const Tensor g = at::randn({23}), h = at::randn({23}), i = at::randn({23});
  (found.logps * g + found.uniform * h + found.log_normalizer * i).sum().backward();
  (own * g + all.mean(1) * h + normalizer * i).sum().backward();
  EXPECT_TRUE(c.hidden.grad().allclose(c.hidden_again.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(c.weight.grad().allclose(c.weight_again.grad(), 1e-4, 1e-5));
}

TEST(Score, GivesTheEntropyAGradientIfAsked) {
  Case c;
  const ScoreRequest request{
      .temperature = 0.7, .multiplier = 1.5, .softcap = 4, .entropy = true, .entropy_gradient = true, .chunk = 5};
  const ScoreResult found = score(c.hidden, {c.weight, c.weight, nullptr}, {}, c.labels, request);
  const Tensor logits = (at::matmul(c.hidden_again, c.weight_again.t()) * 1.5 / 4).tanh() * 4 / 0.7;
  const Tensor all = at::log_softmax(logits, 1), own = all.gather(1, c.labels.unsqueeze(1)).squeeze(1);
  const Tensor entropy = -(all.exp() * all).sum(1), g = at::randn({23}), h = at::randn({23});
  EXPECT_TRUE(found.entropy.allclose(entropy, 1e-4, 1e-5));
  (found.logps * g + found.entropy * h).sum().backward();
  (own * g + entropy * h).sum().backward();
  EXPECT_TRUE(c.hidden.grad().allclose(c.hidden_again.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(c.weight.grad().allclose(c.weight_again.grad(), 1e-4, 1e-5));
}

// Rows with a list of tokens, one of them the label alone, and a row without one, in several chunks.
TEST(Score, IsAmongTheKeptTokensAlone) {
  Case c;
  std::vector<int64_t> list;
  Tensor mask = at::full({23, 41}, -std::numeric_limits<float>::infinity());
  for (int64_t row = 0; row < 23; ++row) {
    std::set<int64_t> ids{c.labels[row].item<int64_t>()};
    for (int64_t k = 0; k < row; ++k) ids.insert((7 * row + 3 * k) % 41);
    if (row == 4) ids.clear();
    list.push_back(std::ssize(ids));
    list.insert(list.end(), ids.begin(), ids.end());
    if (ids.empty()) mask[row].zero_();
    for (const int64_t id : ids) mask[row][id] = 0;
  }
  ScoreRequest request{.temperature = 0.7, .softcap = 4, .entropy = true, .entropy_gradient = true, .chunk = 5};
  request.kept = at::tensor(at::IntArrayRef(list), at::kLong);
  const ScoreResult found = score(c.hidden, {c.weight, c.weight, nullptr}, {}, c.labels, request);

  const Tensor logits = (at::matmul(c.hidden_again, c.weight_again.t()) / 4).tanh() * 4 / 0.7 + mask;
  const Tensor all = at::log_softmax(logits, 1), own = all.gather(1, c.labels.unsqueeze(1)).squeeze(1);
  const Tensor entropy = -(all.exp() * all.masked_fill(mask.ne(0), 0)).sum(1), g = at::randn({23}), h = at::randn({23});
  EXPECT_TRUE(found.logps.allclose(own, 1e-5, 1e-5));
  EXPECT_EQ(found.logps[0].item<float>(), 0);
  EXPECT_TRUE(found.entropy.allclose(entropy, 1e-4, 1e-5));
  (found.logps * g + found.entropy * h).sum().backward();
  (own * g + entropy * h).sum().backward();
  EXPECT_TRUE(c.hidden.grad().allclose(c.hidden_again.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(c.weight.grad().allclose(c.weight_again.grad(), 1e-4, 1e-5));
}

TEST(Score, OfLogitsIsThatOfTheirHiddenStates) {
  Case c;
  const Tensor weight = c.weight.detach();
  const Tensor logps = score(c.hidden.detach(), {weight, weight, nullptr}, {}, c.labels, {}).logps;
  EXPECT_TRUE(label_logps(head_product(c.hidden.detach(), {weight, weight, nullptr}, {}, {}), c.labels).equal(logps));
}

TEST(Score, HasTheSameBitsOfASoftcapInEveryCompany) {
  Case c;
  const Tensor hidden = at::randn({29, 12}), weight = c.weight.detach();
  const auto logits = [&](const Tensor& rows) {
    return chunk_logits(rows, {weight, weight, nullptr}, {}, {}, {.softcap = 2.0});
  };
  const Tensor together = logits(hidden);
  // The kernel's tanh, which is the same on every instruction set, and not ATen's.
  const Tensor plain = head_product(hidden, {weight, weight, nullptr}, {}, {});
  EXPECT_TRUE(together.equal(activate(plain / 2.0, Activation::tanh) * 2.0));
  for (int64_t i = 0; i < hidden.size(0); ++i)
    EXPECT_TRUE(logits(hidden.slice(0, i, i + 1)).equal(together.slice(0, i, i + 1))) << "row " << i;
}

TEST(Score, DoesNotDependOnTheChunk) {
  Case c;
  const auto logps = [&](int64_t chunk) {
    ScoreRequest request;
    request.chunk = chunk;
    return score(c.hidden, {c.weight, c.weight, nullptr}, {}, c.labels, request).logps;
  };
  EXPECT_TRUE(logps(3).equal(logps(23)));
}

// Codes that stand for values have the bits of these values, forward and back.
TEST(Score, OfCodesOfAFileHasTheBitsOfTheirValues) {
  Case c;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const double softcap : {0.0, 4.0}) {
      const ScoreRequest request{.softcap = softcap, .uniform = true, .chunk = 5};
      const Tensor values = c.weight.detach().to(type), labels = c.labels;
      const auto scored = [&](const Matrix& head) {
        const Tensor x = c.hidden.detach().to(type).requires_grad_(true);
        const ScoreResult found = score(x, head, {}, labels, request);
        (found.logps.sum() + found.uniform.square().sum()).backward();
        return std::pair(found.logps.detach(), x.grad());
      };
      const auto of_codes = scored(test::file_head(c.weight.detach())), plain = scored({values, values, nullptr});
      EXPECT_TRUE(of_codes.first.equal(plain.first)) << type << " " << softcap;
      EXPECT_TRUE(of_codes.second.equal(plain.second)) << type << " " << softcap;
    }
}

// The kernels of the codes compute the logits, whether or not a backward follows. x gets its gradient through the
// decoded values.
TEST(Score, OfCodesHasTheSameBitsWithAGradientAndWithout) {
  const Tensor weight = at::randn({41, 64}) * 0.3, labels = at::randint(0, 41, {23}, at::kLong);
  for (const kernels::Codes codes : {kernels::Codes::table4, kernels::Codes::bytes})
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const Matrix head = test::quantized_head(weight, codes);
      const Tensor x = at::randn({23, 64}).to(type).requires_grad_(true);
      const Tensor logps = score(x, head, {}, labels, {.chunk = 5}).logps;
      EXPECT_TRUE(logps.detach().equal(score(x.detach(), head, {}, labels, {.chunk = 5}).logps));
      logps.sum().backward();
      const Tensor logits = multiply_codes(x.detach(), head, {}, at::kFloat);
      const Tensor p = at::log_softmax(logits, 1).exp_();
      const Tensor g = -p.scatter_add(1, labels.unsqueeze(1), at::full({23, 1}, -1.0));
      const Tensor expected = multiply_back(g.to(type), decoded(head, type), type);
      const double tolerance = type == at::kFloat ? 1e-5 : 2e-2;
      EXPECT_TRUE(x.grad().allclose(expected, tolerance, tolerance));
    }
}

TEST(Score, NeverHoldsAWholeWeightInCodesDecoded) {
  constexpr int64_t vocabulary = 16384, size = 256;
  const Tensor values = at::randn({vocabulary, size}), labels = at::randint(0, vocabulary, {2}, at::kLong);
  for (const Matrix& head : {test::quantized_head(values, kernels::Codes::table4), test::file_head(values)}) {
    const Tensor x = at::randn({2, size}).to(at::kBFloat16).requires_grad_(true);
    const test::PeakMemory memory;
    score(x, head, {}, labels, {}).logps.sum().backward();
    EXPECT_LT(memory.bytes(), vocabulary * size * 2 / 4);
  }
}

TEST(Score, KeepsTheLastChunkForABackwardThatMayComeAgain) {
  Case c;
  const auto gradients = [&](int64_t chunk, bool twice) {
    ScoreRequest request;
    request.chunk = chunk;
    const Tensor loss = score(c.hidden, {c.weight, c.weight, nullptr}, {}, c.labels, request).logps.square().sum();
    const auto forget = [&] { c.hidden.mutable_grad() = c.weight.mutable_grad() = Tensor(); };
    forget();
    if (twice) loss.backward({}, /*retain_graph=*/true), forget();
    loss.backward();
    return std::pair(c.hidden.grad(), c.weight.grad());
  };
  const auto once = gradients(23, false), again = gradients(23, true), pieces = gradients(10, true);
  EXPECT_TRUE(again.first.equal(once.first) && again.second.equal(once.second));
  EXPECT_TRUE(pieces.first.equal(once.first));
  EXPECT_TRUE(pieces.second.allclose(once.second, 1e-5, 1e-6));
}

}  // namespace
}  // namespace easydel::ops
