// What an adapter adds to a product: against the two products and the sum written out, with its gradients.
#include "easydel/ops/low_rank.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "easydel/tensor/random.h"

namespace easydel::ops {
namespace {

struct LowRankShape {
  int64_t tokens, in, out, rank;
};

Tensor drawn_values(const std::vector<int64_t>& shape, const char* name) {
  Tensor values = at::zeros(shape, at::kFloat);
  tensor::fill_normal(values, tensor::key_of(5, name), 0.5, shape, std::vector<int64_t>(shape.size(), 0));
  return values;
}

// A product's result, its input and an adapter.
struct LowRankCase {
  explicit LowRankCase(const LowRankShape& shape)
      : y(drawn_values({shape.tokens, shape.out}, "y")),
        x(drawn_values({shape.tokens, shape.in}, "x")),
        a(drawn_values({shape.rank, shape.in}, "a")),
        b(drawn_values({shape.out, shape.rank}, "b")) {
    for (const Tensor* one : {&y, &x, &a, &b}) one->set_requires_grad(true);
  }
  void backward(const Tensor& result) const {
    (result.to(at::kFloat) * drawn_values(result.sizes().vec(), "loss")).sum().backward();
  }
  std::vector<Tensor> gradients() const {
    std::vector<Tensor> out;
    for (const Tensor* one : {&y, &x, &a, &b}) out.push_back(one->grad().clone()), one->mutable_grad() = Tensor();
    return out;
  }

  Tensor y, x, a, b;
};

// Few and many tokens, odd sizes, and ranks whose rows are read in place or packed.
const std::vector<LowRankShape> shapes = {
    {1, 32, 48, 2}, {7, 33, 21, 3}, {70, 64, 96, 2}, {130, 96, 160, 16}, {90, 64, 40, 40}};

TEST(LowRank, IsTwoProductsAndASum) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const LowRankShape& shape : shapes)
      for (const double scale : {2.0, -0.7}) {
        SCOPED_TRACE(testing::Message() << shape.tokens << " " << shape.in << " " << shape.out << " " << shape.rank);
        const LowRankCase given(shape);
        const auto rounded = [&](const Tensor& t) { return t.detach().to(type); };
        const Matrix a{given.a, rounded(given.a), nullptr}, b{given.b, rounded(given.b), nullptr};
        const Tensor sum = add_low_rank(given.y.to(type), given.x.to(type), a, b, scale);
        given.backward(sum);
        const std::vector<Tensor> found = given.gradients();
        const Tensor plain = given.y + given.x.matmul(given.a.t()).matmul(given.b.t()) * scale;
        given.backward(plain);
        const std::vector<Tensor> expected = given.gradients();
        const double tolerance = type == at::kFloat ? 1e-4 : 3e-2;
        const auto near = [&](const Tensor& one, const Tensor& other) {
          return (one.to(at::kFloat) - other).abs().max().item<double>() <=
                 tolerance * other.abs().max().item<double>();
        };
        EXPECT_TRUE(near(sum, plain));
        for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(near(found[i], expected[i])) << i;
        EXPECT_TRUE([&] {  // without a gradient the same bits
          const at::NoGradGuard no_gradient;
          return add_low_rank(given.y.to(type), given.x.to(type), a, b, scale).equal(sum);
        }());
      }
}

TEST(LowRank, OfZerosKeepsTheSignOfZero) {
  const LowRankCase given({70, 64, 96, 2});
  const at::NoGradGuard no_gradient;
  const Tensor y = at::full({70, 96}, -0.0), zeros = at::zeros({96, 2});
  for (const double scale : {2.0, -0.7}) {
    const Tensor sum = add_low_rank(y, given.x, {given.a, given.a, nullptr}, {zeros, zeros, nullptr}, scale);
    EXPECT_TRUE(sum.view(at::kInt).equal(y.view(at::kInt))) << scale;
  }
}

TEST(LowRank, AddsToTheGradientsOfEarlierMicroBatches) {
  const LowRankCase given({70, 64, 96, 2});
  const auto step = [&] {
    given.backward(
        add_low_rank(given.y, given.x, {given.a, given.a.detach(), nullptr}, {given.b, given.b.detach(), nullptr}, 2));
  };
  step();
  const std::vector<Tensor> once = given.gradients();
  step(), step();
  const std::vector<Tensor> twice = given.gradients();
  for (size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(twice[i].allclose(once[i] * 2, 1e-5, 1e-5)) << i;
}

// The sum may be written over y only where nobody can see it, and has the same bits there.
TEST(LowRank, OverwritesOnlyWhatNobodyElseHolds) {
  const at::NoGradGuard no_gradient;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const int64_t tokens : {1, 5, 40})
      for (const int64_t rank : {1, 2, 8, 16, 40}) {
        SCOPED_TRACE(testing::Message() << type << " " << tokens << " " << rank);
        const LowRankCase given({tokens, 64, 48, rank});
        const Matrix a{given.a, given.a.to(type), nullptr}, b{given.b, given.b.to(type), nullptr};
        const Tensor x = given.x.to(type), before = given.y.to(type), y = before.clone(), twice = y.repeat({2, 1});
        const auto forms = low_rank_forms(a, b);
        const Tensor sum = add_low_rank(y, x, a, b, 2);
        EXPECT_FALSE(sum.equal(y));
        EXPECT_TRUE(add_low_rank(y, x, a, b, 2, forms).equal(sum));
        EXPECT_TRUE(add_low_rank(twice.narrow(0, tokens, tokens), x, a, b, 2, forms).equal(sum));  // holds its storage
        EXPECT_TRUE(y.equal(before) && twice.equal(before.repeat({2, 1})));
        EXPECT_TRUE(add_low_rank(before.clone(), x, a, b, 2, forms).equal(sum));
        const bool takes_any_layout = rank <= 16;
        EXPECT_TRUE(!takes_any_layout || add_low_rank(before.t().contiguous().t(), x, a, b, 2, forms).equal(sum));
      }
}

// Two results of one input, each with adapters of other ranks on scattered rows, some of which have none.
TEST(LowRank, OfSeveralAdaptersAtOnceHasTheBitsOfEach) {
  const at::NoGradGuard no_gradient;
  constexpr int64_t tokens = 120, out[] = {70, 48};
  std::vector<std::vector<int64_t>> rows = {{2, 5}, {3, 4, 9, 10, 11}, {}};
  for (int64_t row = 12; row < 110; ++row) rows[2].push_back(row);  // more than a task
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const int64_t in : {96, 90})
      for (const std::vector<int64_t>& ranks : {std::vector<int64_t>{1, 3, 8}, {16, 16, 16}, {12, 32, 2}})
        for (const double scale : {2.0, -0.5}) {
          SCOPED_TRACE(testing::Message() << type << " " << in << " " << ranks[0] << " " << scale);
          const Tensor x = drawn_values({tokens, in}, "x").to(type);
          std::vector<Tensor> before, expected;
          std::vector<std::vector<AddedRows>> added(2);
          for (size_t i = 0; i < 2; ++i) {
            before.push_back(drawn_values({tokens, out[i]}, i == 0 ? "y" : "z").to(type));
            expected.push_back(before[i].clone());
            for (size_t j = 0; j < rows.size(); ++j) {
              const Tensor own_a = drawn_values({ranks[j], in}, "a") * (1.0 + 0.25 * double(i + j)),
                           own_b = drawn_values({out[i], ranks[j]}, "b") - 0.1 * double(j);
              const Matrix a{own_a, own_a.to(type), nullptr}, b{own_b, own_b.to(type), nullptr};
              const double own_scale = j == 1 ? -scale : scale * double(j + 1);
              added[i].push_back({rows[j], low_rank_forms(a, b), own_scale});
              EXPECT_TRUE(adds_rows(*added[i].back().forms, x));
              for (const int64_t row : rows[j])
                expected[i].narrow(0, row, 1).copy_(
                    add_low_rank(before[i].narrow(0, row, 1), x.narrow(0, row, 1), a, b, own_scale));
            }
          }
          std::vector<Tensor> held = {before[0].clone(), before[1].clone()}, alone = {before[0].clone(), before[1]};
          const std::vector<Tensor> also = held;
          const void* const data = alone[0].const_data_ptr();
          add_low_ranks(held, x, added);
          add_low_ranks(alone, x, added);
          for (size_t i = 0; i < 2; ++i) {
            EXPECT_TRUE(held[i].equal(expected[i]) && alone[i].equal(expected[i])) << i;
            EXPECT_TRUE(also[i].equal(before[i])) << "somebody else holds it";
          }
          EXPECT_EQ(alone[0].const_data_ptr(), data);
        }
}

TEST(LowRank, OfManyRowsOfAIsNotAddedToRows) {
  const LowRankCase wide({9, 64, 48, 40});
  const auto forms = low_rank_forms({wide.a, wide.a.detach(), nullptr}, {wide.b, wide.b.detach(), nullptr});
  EXPECT_FALSE(adds_rows(*forms, wide.x.detach()));
}

TEST(LowRank, KeepsWhatAnInputIsMadeOfInsteadOfIt) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const LowRankShape& shape : shapes) {
      SCOPED_TRACE(testing::Message() << shape.tokens << " " << shape.in << " " << shape.out << " " << shape.rank);
      std::vector<std::vector<Tensor>> results;
      for (const bool kept : {true, false}) {
        const LowRankCase given(shape);
        const Tensor gate = given.x.to(type), up = drawn_values(given.x.sizes().vec(), "up").to(type);
        const Matrix a{given.a, given.a.detach().to(type), nullptr}, b{given.b, given.b.detach().to(type), nullptr};
        const Tensor x = gated(gate, up, Activation::silu);
        const auto before = x.use_count();
        const GatedInput made_of{gate, up, Activation::silu};
        const Tensor sum = add_low_rank(given.y.to(type), x, a, b, 2, nullptr, kept ? nullptr : &made_of);
        EXPECT_EQ(x.use_count() > before, kept);
        given.backward(sum);
        results.push_back(given.gradients());
        results.back().push_back(sum.detach());
      }
      for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(results[0][i].equal(results[1][i])) << i;
    }
}

TEST(LowRank, IsAddedToAWeightInFp32) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const LowRankShape& shape : shapes) {
      const Tensor base = drawn_values({shape.out, shape.in}, "w").to(type),
                   a = drawn_values({shape.rank, shape.in}, "a"), b = drawn_values({shape.out, shape.rank}, "b");
      // B of an embedding's adapter is a transposed view.
      const Tensor sum = with_low_rank(base, a, b.t().contiguous().t(), 0.3);
      ASSERT_EQ(sum.scalar_type(), at::kFloat);
      const Tensor values = base.to(at::kFloat);
      const auto of = [](const Tensor& t) { return t.accessor<float, 2>(); };
      for (int64_t i = 0; i < shape.out; ++i)
        for (int64_t j = 0; j < shape.in; ++j) {
          float product = 0;
          for (int64_t k = 0; k < shape.rank; ++k) product = std::fma(of(b)[i][k], of(a)[k][j], product);
          ASSERT_EQ(of(sum)[i][j], std::fma(0.3f, product, of(values)[i][j])) << i << " " << j;
        }
    }
}

}  // namespace
}  // namespace easydel::ops
