#include "easydel/ops/head_divergence.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/head_codes.h"
#include "support/memory.h"

namespace easydel::ops {
namespace {

constexpr int64_t rows = 23, vocabulary = 41;

// A student and a larger teacher, each with every part that a head can have.
struct Heads {
  HeadTerms student, teacher;

  static HeadTerms head(int64_t size, bool learns, double multiplier, double softcap) {
    const auto leaf = [&](Tensor t) { return t.requires_grad_(learns); };
    const auto matrix = [&](int64_t out, int64_t in) {
      const Tensor weight = leaf(at::randn({out, in}) * 0.4);
      return Matrix{weight, weight, nullptr};
    };
    HeadTerms out{leaf(at::randn({rows, size})), matrix(vocabulary, size), leaf(at::randn({vocabulary}))};
    out.added.push_back({leaf(at::randn({rows, 3})), matrix(vocabulary, 3)});
    out.multiplier = multiplier, out.softcap = softcap;
    return out;
  }
  explicit Heads(double softcap)
      : student(head(12, true, 0.8, softcap)), teacher(head(17, false, 1.1, softcap > 0 ? 4.0 : 0.0)) {}

  std::vector<Tensor> learned() const {
    return {student.x, student.weight.master, student.bias, student.added[0].x, student.added[0].weight.master};
  }
};

Tensor logits_in_fp64(const HeadTerms& terms, double temperature) {
  const auto wide = [](const Tensor& t) { return t.to(at::kDouble); };
  const auto& more = terms.added[0];
  Tensor out = at::matmul(wide(terms.x), wide(terms.weight.master).t()) + wide(terms.bias) +
               at::matmul(wide(more.x), wide(more.weight.master).t());
  out = out * terms.multiplier;
  if (terms.softcap > 0) out = terms.softcap * (out / terms.softcap).tanh();
  return out / temperature;
}

// The definition, on whole logits in fp64.
Tensor plain(const HeadTerms& student, const HeadTerms& teacher, const DivergenceRequest& request) {
  const Tensor p = at::log_softmax(logits_in_fp64(student, request.temperature), -1);
  Tensor all = logits_in_fp64(teacher, request.temperature);
  if (request.teacher_top_k > 0) {
    const auto [values, ids] = at::topk(all, request.teacher_top_k, -1);
    all = at::full_like(all, -1e6).scatter(-1, ids, values);
  }
  const Tensor q = at::log_softmax(all, -1);
  if (request.beta == 0) return (q.exp() * (q - p)).sum(-1);
  if (request.beta == 1) return (p.exp() * (p - q)).sum(-1);
  const Tensor mixture = at::logaddexp(q + std::log(request.beta), p + std::log(1 - request.beta));
  return request.beta * (q.exp() * (q - mixture)).sum(-1) + (1 - request.beta) * (p.exp() * (p - mixture)).sum(-1);
}

TEST(HeadDivergence, EqualsTheWholeLogitsInFp64WithItsGradients) {
  for (const double beta : {0.0, 0.1, 0.5, 0.9, 1.0})
    for (const int64_t top_k : {int64_t{0}, int64_t{5}})
      for (const double softcap : {0.0, 3.0})
        for (const int64_t chunk : {int64_t{5}, int64_t{0}}) {
          if (beta == 1 && top_k > 0) continue;
          const Heads heads(softcap);
          const DivergenceRequest request{
              .beta = beta, .temperature = 1.7, .teacher_top_k = top_k, .entropy = true, .chunk = chunk};
          const DivergenceResult found = head_divergence(heads.student, heads.teacher, request);
          const Tensor expected = plain(heads.student, heads.teacher, request);
          const std::string what = "beta " + std::to_string(beta) + ", top k " + std::to_string(top_k) + ", softcap " +
                                   std::to_string(softcap) + ", chunk " + std::to_string(chunk);
          EXPECT_TRUE(found.divergence.to(at::kDouble).allclose(expected, 1e-5, 1e-6)) << what;
          const Tensor p = at::log_softmax(logits_in_fp64(heads.student, 1.7), -1);
          EXPECT_TRUE(found.entropy.to(at::kDouble).allclose(-(p.exp() * p).sum(-1), 1e-5, 1e-6)) << what;

          const Tensor weights = at::randn({rows});
          std::vector<Tensor> ours, theirs;
          for (const auto& [loss, gradients] : {std::pair{(found.divergence * weights).sum(), &ours},
                                                {(expected * weights.to(at::kDouble)).sum(), &theirs}}) {
            loss.backward();
            for (const Tensor& leaf : heads.learned()) {
              gradients->push_back(leaf.grad().clone());
              leaf.mutable_grad() = Tensor();
            }
          }
          for (size_t i = 0; i < ours.size(); ++i)
            EXPECT_TRUE(ours[i].allclose(theirs[i], 1e-4, 1e-5)) << what << ", gradient " << i;
        }
}

TEST(HeadDivergence, HasTheSameBitsWithoutAGradientAndInOtherChunks) {
  const Heads heads(0);
  const auto values = [&](int64_t chunk) {
    return head_divergence(heads.student, heads.teacher, {.beta = 0.5, .chunk = chunk}).divergence;
  };
  const Tensor whole = values(rows);
  EXPECT_TRUE(values(4).equal(whole));
  const c10::AutoGradMode no_gradient(false);
  EXPECT_TRUE(values(7).equal(whole));
}

// A vocabulary is often padded to a round number.
TEST(HeadDivergence, LeavesOutTokensThatOneHeadAloneHas) {
  const Heads heads(0);
  HeadTerms longer = heads.student;
  const auto padded = [](const Tensor& t) {
    std::vector<int64_t> shape = t.sizes().vec();
    shape[0] = 3;
    return at::cat({t.detach(), at::randn(shape)}).requires_grad_(true);
  };
  longer.weight.master = longer.weight.compute = padded(heads.student.weight.master);
  longer.bias = padded(heads.student.bias);
  Matrix& more = longer.added[0].weight;
  more.master = more.compute = padded(more.master);
  const Tensor whole = head_divergence(heads.student, heads.teacher, {}).divergence;
  const Tensor found = head_divergence(longer, heads.teacher, {}).divergence;
  EXPECT_TRUE(found.equal(whole));
  found.sum().backward();
  whole.sum().backward();
  const Tensor gradient = longer.weight.master.grad();
  EXPECT_TRUE(gradient.slice(0, 0, vocabulary).equal(heads.student.weight.master.grad()));
  EXPECT_EQ(gradient.slice(0, vocabulary).abs().max().item<double>(), 0);
}

// Codes that stand for values have the bits of these values, forward and back, also where one vocabulary is longer.
TEST(HeadDivergence, OfCodesOfAFileHasTheBitsOfTheirValues) {
  const Tensor student = at::randn({vocabulary + 3, 12}) * 0.4, teacher = at::randn({vocabulary, 17}) * 0.4;
  const Tensor x = at::randn({rows, 12}), y = at::randn({rows, 17});
  const auto compared = [&](const Matrix& own, const Matrix& other) {
    const Tensor in = x.clone().requires_grad_(true);
    const Tensor found = head_divergence({in, own}, {y, other}, {.beta = 0.5, .chunk = 5}).divergence;
    found.sum().backward();
    return std::pair(found.detach(), in.grad());
  };
  const auto plain = compared({student, student, nullptr}, {teacher, teacher, nullptr});
  const auto coded = compared(test::file_head(student), test::file_head(teacher));
  EXPECT_TRUE(coded.first.equal(plain.first));
  EXPECT_TRUE(coded.second.equal(plain.second));
}

TEST(HeadDivergence, OfCodesHasTheSameBitsWithAGradientAndWithout) {
  for (const kernels::Codes codes : {kernels::Codes::table4, kernels::Codes::bytes}) {
    const Matrix student = test::quantized_head(at::randn({vocabulary + 30, 64}), codes);
    const Matrix teacher = test::quantized_head(at::randn({vocabulary, 64}), codes);
    const Tensor x = at::randn({rows, 64}).requires_grad_(true), y = at::randn({rows, 64});
    const Tensor found = head_divergence({x, student}, {y, teacher}, {.chunk = 5}).divergence;
    EXPECT_TRUE(found.detach().equal(head_divergence({x.detach(), student}, {y, teacher}, {}).divergence));
    found.sum().backward();
    const auto logits = [](const Tensor& in, const Matrix& head) {
      return multiply_codes(in.detach(), head, {}, at::kFloat).narrow(1, 0, vocabulary);
    };
    const Tensor p = at::log_softmax(logits(x, student), -1).exp(), q = at::log_softmax(logits(y, teacher), -1).exp();
    const Tensor values = decoded(student, at::kFloat).narrow(0, 0, vocabulary);
    EXPECT_TRUE(x.grad().allclose(at::matmul(p - q, values), 1e-4, 1e-5));
  }
}

TEST(HeadDivergence, NeverHoldsAWholeWeightInCodesDecoded) {
  constexpr int64_t tokens = 16384, size = 256;
  const Matrix student = test::quantized_head(at::randn({tokens, size}), kernels::Codes::table4);
  const Matrix teacher = test::file_head(at::randn({tokens, size}));
  const Tensor x = at::randn({1, size}).to(at::kBFloat16).requires_grad_(true);
  const test::PeakMemory memory;
  head_divergence({x, student}, {x.detach(), teacher}, {}).divergence.sum().backward();
  EXPECT_LT(memory.bytes(), tokens * size * 2 / 4);
}

TEST(HeadDivergence, OfAModelWithItselfIsZeroAndTeachesNothing) {
  Heads heads(0);
  heads.teacher = heads.student;
  for (const double beta : {0.0, 0.5, 1.0}) {
    const Tensor found = head_divergence(heads.student, heads.teacher, {.beta = beta}).divergence;
    EXPECT_LT(found.abs().max().item<double>(), 1e-6);
    found.sum().backward();
    EXPECT_LT(heads.student.x.grad().abs().max().item<double>(), 1e-6);
    heads.student.x.mutable_grad() = Tensor();
  }
}

}  // namespace
}  // namespace easydel::ops
