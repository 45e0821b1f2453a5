#include "easydel/kernels/fused.h"

#include <numeric>

#include "easydel/base/error.h"
#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

const Input none;

// make(executor) gives the reference's bits under every instruction set and thread pool; returns them.
std::vector<float> one_set_of_bits(const std::function<std::vector<float>(Executor&)>& make) {
  std::vector<float> first;
  on_every_isa([&] {
    for (Executor* const executor : {&serial_executor(), &pool_of_two(), &pool_of_five()}) {
      const auto again = make(*executor);
      if (first.empty()) first = again;
      EXPECT_TRUE(same_bits(again, first));
    }
  });
  return first;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i]))) << "at " << i;
}

// The slope of f along x[i], by differences in double precision.
double slope(const std::function<double(const std::vector<double>&)>& f, std::vector<double> x, size_t i) {
  const double h = 1e-5, at = x[i];
  x[i] = at + h;
  const double up = f(x);
  x[i] = at - h;
  return (up - f(x)) / (2 * h);
}

struct NormShape {
  int64_t rows, n;
};
const NormShape norm_shapes[] = {{1, 1}, {3, 5}, {2, 16}, {130, 33}, {70, 200}};

std::vector<double> exact_norm(bool centre, float eps, double offset, const std::vector<double>& x,
                               const std::vector<float>& w, const std::vector<float>& b, int64_t n) {
  std::vector<double> y(x.size());
  for (size_t r = 0; r < x.size(); r += size_t(n)) {
    double mean = 0, square = 0;
    for (size_t i = 0; centre && i < size_t(n); ++i) mean += x[r + i] / double(n);
    for (size_t i = 0; i < size_t(n); ++i) square += (x[r + i] - mean) * (x[r + i] - mean) / double(n);
    for (size_t i = 0; i < size_t(n); ++i)
      y[r + i] = (x[r + i] - mean) / std::sqrt(square + double(eps)) * (w.empty() ? 1 : double(w[i]) + offset) +
                 (b.empty() ? 0 : double(b[i]));
  }
  return y;
}

std::vector<double> to_double(const std::vector<float>& x) { return {x.begin(), x.end()}; }

TEST(RmsNorm, IsNearTheExactOneWithOneSetOfBits) {
  for (const NormShape s : norm_shapes)
    for (const bool weighted : {false, true}) {
      const auto x = normal(s.rows * s.n, 1), w = weighted ? normal(s.n, 2) : std::vector<float>{};
      const NormSpec spec{.eps = 1e-3f, .weight_offset = 1};
      const auto y = one_set_of_bits([&](Executor& executor) {
        std::vector<float> out(x.size() + size_t(s.rows));
        rms_norm(executor, spec, {x.data(), s.n}, weighted ? Input(w.data(), s.n) : none, s.rows, s.n,
                 {out.data(), s.n}, out.data() + x.size());
        return out;
      });
      expect_near({y.begin(), y.begin() + s.rows * s.n}, exact_norm(false, 1e-3f, 1, to_double(x), w, {}, s.n), 2e-6);
    }
}

TEST(RmsNorm, RoundsBeforeTheWeightWhereTheModelDoes) {
  constexpr int64_t n = 40;
  const auto x = narrowed(normal(n, 3)), w = narrowed(normal(n, 4));
  std::vector<bf16> y(n), early(n);
  std::vector<float> plain(n);
  rms_norm(serial_executor(), {}, {x.data(), n}, none, 1, n, {plain.data(), n}, nullptr);
  rms_norm(serial_executor(), {}, {x.data(), n}, {w.data(), n}, 1, n, {y.data(), n}, nullptr);
  rms_norm(serial_executor(), {.round_before_weight = true}, {x.data(), n}, {w.data(), n}, 1, n, {early.data(), n},
           nullptr);
  for (size_t i = 0; i < n; ++i) {
    EXPECT_EQ(y[i].bits, narrow(plain[i] * widen(w[i])).bits);
    EXPECT_EQ(early[i].bits, narrow(widen(narrow(plain[i])) * widen(w[i])).bits);
  }
  EXPECT_FALSE(same_bits(y, early));
}

TEST(LayerNorm, IsNearTheExactOneWithOneSetOfBits) {
  for (const NormShape s : norm_shapes) {
    auto x = normal(s.rows * s.n, 5);
    for (float& v : x) v += 30;  // a mean that would swallow a variance taken in one sweep
    const auto w = normal(s.n, 6), b = normal(s.n, 7);
    const NormSpec spec{.eps = 1e-3f};
    const auto y = one_set_of_bits([&](Executor& executor) {
      std::vector<float> out(x.size());
      layer_norm(executor, spec, {x.data(), s.n}, {w.data(), s.n}, {b.data(), s.n}, s.rows, s.n, {out.data(), s.n},
                 nullptr);
      return out;
    });
    expect_near(y, exact_norm(true, 1e-3f, 0, to_double(x), w, b, s.n), 3e-5);
  }
}

TEST(NormGradients, AreNearTheSlopesWithOneSetOfBits) {
  for (const bool centre : {false, true})
    for (const NormShape s : {NormShape{3, 5}, NormShape{130, 33}}) {
      const auto x = normal(s.rows * s.n, 8), dy = normal(s.rows * s.n, 9), w = normal(s.n, 10);
      const float offset = centre ? 0.0f : 1.0f;
      const NormSpec spec{.eps = 1e-2f, .weight_offset = offset};
      const auto got = one_set_of_bits([&](Executor& executor) {
        std::vector<float> y(x.size()), kept(2 * size_t(s.rows)), out(x.size() + 2 * w.size(), 0.0f);
        float* const dw = out.data() + x.size();
        std::fill(dw, dw + s.n, 0.25f);
        if (centre) {
          layer_norm(executor, spec, {x.data(), s.n}, {w.data(), s.n}, none, s.rows, s.n, {y.data(), s.n}, kept.data());
          layer_norm_backward(executor, spec, {dy.data(), s.n}, {x.data(), s.n}, {w.data(), s.n}, kept.data(), s.rows,
                              s.n, {out.data(), s.n}, dw, dw + s.n);
        } else {
          rms_norm(executor, spec, {x.data(), s.n}, {w.data(), s.n}, s.rows, s.n, {y.data(), s.n}, kept.data());
          rms_norm_backward(executor, spec, {dy.data(), s.n}, {x.data(), s.n}, {w.data(), s.n}, kept.data(), s.rows,
                            s.n, {out.data(), s.n}, dw);
        }
        return out;
      });
      const auto objective = [&](const std::vector<double>& at) {
        const auto y = exact_norm(centre, 1e-2f, double(offset), at, w, {}, s.n);
        return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
      };
      for (size_t i = 0; i < x.size(); i += 1 + x.size() / 40)
        ASSERT_NEAR(got[i], slope(objective, to_double(x), i), 2e-5) << i;
      const auto plain = exact_norm(centre, 1e-2f, 0, to_double(x), {}, {}, s.n);
      for (size_t i = 0; i < size_t(s.n); ++i) {
        double dw = 0.25, db = 0;
        for (size_t r = 0; r < size_t(s.rows); ++r) {
          dw += plain[r * size_t(s.n) + i] * double(dy[r * size_t(s.n) + i]);
          db += double(dy[r * size_t(s.n) + i]);
        }
        ASSERT_NEAR(got[x.size() + i], dw, 3e-5);
        if (centre) {
          ASSERT_NEAR(got[x.size() + w.size() + i], db, 3e-5);
        }
      }
    }
}

TEST(Rotate, RotatesPairsAndBackInBothLayouts) {
  constexpr int64_t tokens = 9, heads = 3;
  for (const int64_t pairs : {1, 4, 16, 37})
    for (const bool interleaved : {false, true}) {
      const int64_t dim = 2 * pairs + 3;  // the last three stay
      const auto x = normal(tokens * heads * dim, 11), angle = normal(tokens * pairs, 12);
      std::vector<float> cos, sin;
      for (const float a : angle) cos.push_back(std::cos(a)), sin.push_back(std::sin(a));
      const auto here = [&](std::vector<float>& of) { return MutableHeads{of.data(), DType::f32, heads * dim, dim}; };
      const auto y = one_set_of_bits([&](Executor& executor) {
        auto out = x;
        rotate(executor, here(out), here(out), tokens, heads, dim, pairs, cos.data(), sin.data(), pairs, interleaved,
               false);
        return out;
      });
      auto expected = x;
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t p = 0; p < pairs; ++p) {
            const size_t base = size_t((t * heads + h) * dim), a = base + size_t(interleaved ? 2 * p : p),
                         b = base + size_t(interleaved ? 2 * p + 1 : p + pairs), table = size_t(t * pairs + p);
            expected[a] = x[a] * cos[table] - x[b] * sin[table];
            expected[b] = x[b] * cos[table] + x[a] * sin[table];
          }
      EXPECT_TRUE(same_bits(y, expected));
      // To rows of another tensor with distant heads, as in a cache.
      auto from = x;
      std::vector<float> cache(x.size(), 7.0f), again(x.size());
      rotate(pool_of_two(), here(from), {cache.data(), DType::f32, dim, tokens * dim}, tokens, heads, dim, pairs,
             cos.data(), sin.data(), pairs, interleaved, false);
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t h = 0; h < heads; ++h)
          std::copy_n(cache.begin() + (h * tokens + t) * dim, dim, again.begin() + (t * heads + h) * dim);
      EXPECT_TRUE(same_bits(again, expected));
      auto back = y;
      rotate(serial_executor(), here(back), here(back), tokens, heads, dim, pairs, cos.data(), sin.data(), pairs,
             interleaved, true);
      expect_near(back, to_double(x), 1e-6);
      auto in_bf16 = narrowed(x);
      auto widened_first = widened(in_bf16);
      const MutableHeads short_heads{in_bf16.data(), DType::bf16, heads * dim, dim};
      rotate(serial_executor(), short_heads, short_heads, tokens, heads, dim, pairs, cos.data(), sin.data(), pairs,
             interleaved, false);
      rotate(serial_executor(), here(widened_first), here(widened_first), tokens, heads, dim, pairs, cos.data(),
             sin.data(), pairs, interleaved, false);
      EXPECT_TRUE(same_bits(in_bf16, narrowed(widened_first)));
    }
}

constexpr Activation kActivations[] = {Activation::silu,    Activation::gelu, Activation::gelu_tanh,
                                       Activation::sigmoid, Activation::tanh, Activation::mish};

double exact_act(Activation activation, double x) {
  if (activation == Activation::sigmoid) return 1 / (1 + std::exp(-x));
  if (activation == Activation::tanh) return std::tanh(x);
  if (activation == Activation::mish) return x * std::tanh(std::log1p(std::exp(x)));
  if (activation == Activation::silu) return x / (1 + std::exp(-x));
  if (activation == Activation::gelu) return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(Activate, IsNearTheExactOneFromTinyToHuge) {
  std::vector<float> x = {0.0f, -0.0f, 1e-40f, -1e-40f, 1e30f, -1e30f, INFINITY};
  for (float v = -30; v < 30; v += 0.01f) x.push_back(v);
  const int64_t n = int64_t(x.size());
  for (const Activation a : {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::mish}) {
    const auto y = one_set_of_bits([&](Executor& executor) {
      std::vector<float> out(x.size());
      activate(executor, a, {x.data(), n}, none, 1, n, {out.data(), n});
      return out;
    });
    EXPECT_EQ(y[6], INFINITY);
    EXPECT_EQ(y[5], 0.0f);
    EXPECT_EQ(y[4], 1e30f);
    for (size_t i = 7; i < x.size(); ++i)
      ASSERT_NEAR(y[i], exact_act(a, double(x[i])), 3e-7 * std::max(1.0f, std::fabs(x[i]))) << x[i];
  }
  std::vector<float> nan = {NAN};
  activate(serial_executor(), Activation::silu, {nan.data(), 1}, none, 1, 1, {nan.data(), 1});
  EXPECT_TRUE(std::isnan(nan[0]));
}

TEST(Activate, EndsWhereSigmoidAndTanhDo) {
  std::vector<float> x = {INFINITY, -INFINITY, 1e30f, -1e30f, 0.0f};
  for (float v = -30; v < 30; v += 0.01f) x.push_back(v);
  const int64_t n = int64_t(x.size());
  for (const Activation a : {Activation::sigmoid, Activation::tanh}) {
    const auto y = one_set_of_bits([&](Executor& executor) {
      std::vector<float> out(x.size());
      activate(executor, a, {x.data(), n}, none, 1, n, {out.data(), n});
      return out;
    });
    const float least = a == Activation::tanh ? -1.0f : 0.0f;
    EXPECT_EQ((std::vector<float>(y.begin(), y.begin() + 5)),
              (std::vector<float>{1, least, 1, least, a == Activation::tanh ? 0.0f : 0.5f}));
    for (size_t i = 5; i < x.size(); ++i) ASSERT_NEAR(y[i], exact_act(a, double(x[i])), 3e-7) << x[i];
  }
}

TEST(Activate, RaisesEToAPower) {
  std::vector<float> x = {-INFINITY, -90, 0.0f, -0.0f, INFINITY, NAN};
  for (float v = -87; v < 88; v += 0.01f) x.push_back(v);
  const int64_t n = int64_t(x.size());
  const std::vector<float> dy = normal(n, 15);
  const auto y = one_set_of_bits([&](Executor& executor) {
    std::vector<float> out(2 * x.size());
    activate(executor, Activation::exp, {x.data(), n}, none, 1, n, {out.data(), n});
    activate_backward(executor, Activation::exp, {dy.data(), n}, {x.data(), n}, none, 1, n, {out.data() + n, n}, {});
    return out;
  });
  EXPECT_EQ((std::vector<float>(y.begin(), y.begin() + 5)), (std::vector<float>{0, 0, 1, 1, INFINITY}));
  EXPECT_TRUE(std::isnan(y[5]));
  for (size_t i = 6; i < x.size(); ++i) {
    ASSERT_NEAR(y[i] / std::exp(double(x[i])), 1, 2.5e-7) << x[i];
    ASSERT_EQ(y[x.size() + i], dy[i] * y[i]) << x[i];
  }
}

TEST(Activate, GatesAndDifferentiates) {
  constexpr int64_t rows = 7, n = 37, stride = 80;
  const auto both = normal(rows * stride, 13, 2), dy = normal(rows * n, 14);  // gate and up side by side in a row
  const Input gate(both.data(), stride), up(both.data() + 40, stride);
  for (const Activation a : kActivations) {
    const auto got = one_set_of_bits([&](Executor& executor) {
      std::vector<float> out(3 * rows * n);
      activate(executor, a, gate, up, rows, n, {out.data(), n});
      activate_backward(executor, a, {dy.data(), n}, gate, up, rows, n, {out.data() + rows * n, n},
                        {out.data() + 2 * rows * n, n});
      return out;
    });
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < n; ++i) {
        const double g = double(both[size_t(r * stride + i)]), u = double(both[size_t(r * stride + 40 + i)]);
        const double d = double(dy[size_t(r * n + i)]), h = 1e-5;
        const double act_slope = (exact_act(a, g + h) - exact_act(a, g - h)) / (2 * h);
        ASSERT_NEAR(got[size_t(r * n + i)], exact_act(a, g) * u, 3e-6);
        ASSERT_NEAR(got[size_t((rows + r) * n + i)], d * u * act_slope, 1e-5);
        ASSERT_NEAR(got[size_t((2 * rows + r) * n + i)], d * exact_act(a, g), 3e-6);
      }
  }
}

TEST(Activate, BackwardGivesTheForwardsResultAgainWhereTheGradientLay) {
  constexpr int64_t rows = 3, n = 37;
  const auto gate = normal(rows * n, 71, 2), up = normal(rows * n, 72), dy = normal(rows * n, 73);
  for (const Activation a : kActivations) {
    std::vector<float> y(gate.size()), again = dy, dgate(gate.size()), dup(gate.size()), dgate2 = dgate, dup2 = dup;
    activate(serial_executor(), a, {gate.data(), n}, {up.data(), n}, rows, n, {y.data(), n});
    activate_backward(serial_executor(), a, {dy.data(), n}, {gate.data(), n}, {up.data(), n}, rows, n,
                      {dgate.data(), n}, {dup.data(), n});
    activate_backward(pool_of_two(), a, {again.data(), n}, {gate.data(), n}, {up.data(), n}, rows, n,
                      {dgate2.data(), n}, {dup2.data(), n}, {again.data(), n});
    EXPECT_TRUE(same_bits(again, y) && same_bits(dgate2, dgate) && same_bits(dup2, dup));
  }
}

TEST(CrossEntropy, GivesLossLseAndGradientWithOneSetOfBits) {
  for (const int64_t vocabulary : {1, 2, 33, 1000})
    for (const CrossEntropySpec spec :
         {CrossEntropySpec{}, CrossEntropySpec{.label_smoothing = 0.1f},
          CrossEntropySpec{.ignore_label = -7, .label_smoothing = 0.2f, .z_loss = 1e-2f}}) {
      constexpr int64_t rows = 6;
      const auto x = normal(rows * vocabulary, 15, 4), scales = normal(rows, 16);
      std::vector<int64_t> labels;
      for (int64_t r = 0; r < rows; ++r) labels.push_back(r == 2 ? spec.ignore_label : r * 7919 % vocabulary);
      const auto got = one_set_of_bits([&](Executor& executor) {
        std::vector<float> out(x);
        out.resize(x.size() + 2 * rows);
        cross_entropy(executor, spec, {out.data(), vocabulary}, labels.data(), rows, vocabulary, out.data() + x.size(),
                      out.data() + x.size() + rows, scales.data());
        return out;
      });
      std::vector<float> loss(rows), lse(rows);
      auto untouched = x;
      cross_entropy(serial_executor(), spec, {untouched.data(), vocabulary}, labels.data(), rows, vocabulary,
                    loss.data(), lse.data(), nullptr);
      EXPECT_TRUE(same_bits(untouched, x));
      EXPECT_TRUE(same_bits(loss, {got.end() - 2 * rows, got.end() - rows}));
      for (int64_t r = 0; r < rows; ++r) {
        const float* const row = x.data() + r * vocabulary;
        double sum = 0, mean = 0;
        for (int64_t i = 0; i < vocabulary; ++i)
          sum += std::exp(double(row[i])), mean += double(row[i]) / double(vocabulary);
        const double all = std::log(sum), e = double(spec.label_smoothing), z = double(spec.z_loss);
        if (r == 2) {
          EXPECT_EQ(loss[2], 0);
          EXPECT_EQ(lse[2], 0);
        } else {
          ASSERT_NEAR(lse[size_t(r)], all, 2e-6 * std::max(1.0, std::fabs(all)));
          ASSERT_NEAR(loss[size_t(r)],
                      (1 - e) * (all - double(row[labels[size_t(r)]])) + e * (all - mean) + z * all * all, 5e-6);
        }
        for (int64_t i = 0; i < vocabulary; ++i) {
          const double p = std::exp(double(row[i]) - all), own = i == labels[size_t(r)] ? 1 - e : 0;
          const double g =
              r == 2 ? 0 : double(scales[size_t(r)]) * (p * (1 + 2 * z * all) - own - e / double(vocabulary));
          ASSERT_NEAR(got[size_t(r * vocabulary + i)], g, 2e-6);
        }
      }
    }
}

TEST(CrossEntropy, SurvivesHugeLogitsAndRefusesStrangeLabels) {
  std::vector<float> x = {1e30f, -1e30f, -INFINITY}, loss(1), lse(1), scale = {1};
  std::vector<int64_t> label = {1};
  cross_entropy(serial_executor(), {}, {x.data(), 3}, label.data(), 1, 3, loss.data(), lse.data(), scale.data());
  EXPECT_FLOAT_EQ(loss[0], 2e30f);
  EXPECT_EQ(x, (std::vector<float>{1, -1, 0}));
  label[0] = 3;
  EXPECT_THROW(
      cross_entropy(serial_executor(), {}, {x.data(), 3}, label.data(), 1, 3, loss.data(), lse.data(), nullptr), Bug);
}

TEST(AddNorm, HasTheBitsOfItsTwoStepsForwardAndBack) {
  for (const NormShape s : norm_shapes) {
    const int64_t count = s.rows * s.n;
    const auto x = normal(count, 51), r = normal(count, 52), dy = normal(count, 53), dsum = normal(count, 54);
    const auto w = normal(s.n, 55), b = normal(s.n, 56);
    const NormSpec spec;
    std::vector<float> sum(size_t(count), 0.0f);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] + r[i];
    for (const bool centre : {false, true}) {
      std::vector<float> y(sum.size()), kept(size_t(2 * s.rows)), dx(sum.size()), dw(size_t(s.n)), db(size_t(s.n));
      const auto in = [&](const std::vector<float>& of) { return Input{of.data(), s.n}; };
      Executor& alone = serial_executor();
      if (centre) {
        layer_norm(alone, spec, in(sum), in(w), in(b), s.rows, s.n, {y.data(), s.n}, kept.data());
        layer_norm_backward(alone, spec, in(dy), in(sum), in(w), kept.data(), s.rows, s.n, {dx.data(), s.n}, dw.data(),
                            db.data());
      } else {
        rms_norm(alone, spec, in(sum), in(w), s.rows, s.n, {y.data(), s.n}, kept.data());
        rms_norm_backward(alone, spec, in(dy), in(sum), in(w), kept.data(), s.rows, s.n, {dx.data(), s.n}, dw.data());
      }
      for (size_t i = 0; i < dx.size(); ++i) dx[i] += dsum[i];
      on_every_isa([&] {
        std::vector<float> sum2(sum.size()), y2(y.size()), kept2(kept.size()), dx2(dx.size()), dw2(dw.size()),
            db2(db.size());
        const Output sum_out{sum2.data(), s.n}, y_out{y2.data(), s.n}, dx_out{dx2.data(), s.n};
        if (centre) {
          add_layer_norm(pool_of_two(), spec, in(x), in(r), in(w), in(b), s.rows, s.n, sum_out, y_out, kept2.data());
          add_layer_norm_backward(pool_of_two(), spec, in(dy), in(dsum), in(sum2), in(w), kept2.data(), s.rows, s.n,
                                  dx_out, dw2.data(), db2.data());
        } else {
          add_rms_norm(pool_of_two(), spec, in(x), in(r), in(w), s.rows, s.n, sum_out, y_out, kept2.data());
          add_rms_norm_backward(pool_of_two(), spec, in(dy), in(dsum), in(sum2), in(w), kept2.data(), s.rows, s.n,
                                dx_out, dw2.data());
        }
        EXPECT_TRUE(same_bits(sum2, sum) && same_bits(y2, y) && same_bits(kept2, kept));
        EXPECT_TRUE(same_bits(dx2, dx) && same_bits(dw2, dw) && same_bits(db2, db));
      });
    }
  }
}

TEST(AdamW, FollowsItsFormulaForAStepAfterAnother) {
  constexpr int64_t n = 70001;
  const auto start = normal(n, 17);
  const AdamW base{
      .learning_rate = 3e-3, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1, .grad_scale = 0.5f};
  const auto got = one_set_of_bits([&](Executor& executor) {
    auto p = start;
    std::vector<float> m(n), v(n);
    std::vector<bf16> copy(n);
    for (int64_t step = 1; step <= 3; ++step) {
      AdamW spec = base;
      spec.step = step;
      const auto g = normal(n, 17 + unsigned(step));
      if (step == 2)
        adamw(executor, spec, n, p.data(), narrowed(g).data(), DType::bf16, m.data(), v.data(), nullptr);
      else
        adamw(executor, spec, n, p.data(), g.data(), DType::f32, m.data(), v.data(), copy.data());
    }
    EXPECT_TRUE(same_bits(copy, narrowed(p)));
    return p;
  });
  std::vector<double> p = to_double(start), m(n), v(n);
  for (int64_t step = 1; step <= 3; ++step) {
    const auto g = normal(n, 17 + unsigned(step));
    for (size_t i = 0; i < n; ++i) {
      const double d = 0.5 * double(step == 2 ? widen(narrow(g[i])) : g[i]);
      p[i] *= 1 - 3e-3 * 0.1;
      m[i] = 0.8 * m[i] + 0.2 * d, v[i] = 0.95 * v[i] + 0.05 * d * d;
      const double root = std::sqrt(v[i]) / std::sqrt(1 - std::pow(0.95, double(step))) + 1e-6;
      p[i] -= 3e-3 / (1 - std::pow(0.8, double(step))) * m[i] / root;
    }
  }
  expect_near(got, p, 1e-6);
}

}  // namespace
}  // namespace easydel::kernels
