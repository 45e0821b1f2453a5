#include "kernels/attention_support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

struct Gradients {
  std::vector<float> dq, dk, dv, dsinks;
};

Gradients gradients(Executor& executor, const Problem& p, const std::vector<float>& dout) {
  const AttentionSpec& s = p.spec;
  const Attended forward = attended(executor, p);
  Gradients g{std::vector<float>(p.q.size(), 9.0f), std::vector<float>(p.k.size(), 9.0f),
              std::vector<float>(p.v.size(), 9.0f), std::vector<float>(size_t(s.heads), 0.0f)};
  attend_backward(executor, s, p.sequences,
                  {.q = p.q_heads(),
                   .k = p.k_heads(),
                   .v = p.v_heads(),
                   .out = heads_of(forward.out, s.heads, s.v_dim),
                   .dout = heads_of(dout, s.heads, s.v_dim),
                   .lse = forward.lse.data(),
                   .dq = heads_of(g.dq, s.heads, s.head_dim),
                   .dk = heads_of(g.dk, s.kv_heads, s.head_dim),
                   .dv = heads_of(g.dv, s.kv_heads, s.v_dim),
                   .dsinks = g.dsinks.data()});
  return g;
}

// In double precision, by the chain rule over the whole matrix of weights.
struct ExactGradients {
  std::vector<double> dq, dk, dv, dsinks;
};
ExactGradients exact_gradients(const Problem& p, const std::vector<float>& dout) {
  const AttentionSpec& spec = p.spec;
  const int64_t group = spec.heads / spec.kv_heads, dim = spec.head_dim, v_dim = spec.v_dim;
  const Exact forward = exact(p);
  ExactGradients g{std::vector<double>(p.q.size()), std::vector<double>(p.k.size()), std::vector<double>(p.v.size()),
                   std::vector<double>(size_t(spec.heads))};
  for (const AttentionSequence& s : p.sequences)
    for (int64_t i = 0; i < s.queries; ++i)
      for (int64_t h = 0; h < spec.heads; ++h) {
        const int64_t row = (s.first_query + i) * spec.heads + h;
        double dot = 0;
        for (int64_t d = 0; d < v_dim; ++d)
          dot += forward.out[size_t(row * v_dim + d)] * double(dout[size_t(row * v_dim + d)]);
        if (spec.sinks) g.dsinks[size_t(h)] -= std::exp(double(spec.sinks[h]) - forward.lse[size_t(row)]) * dot;
        for (int64_t t = 0; t < s.keys; ++t) {
          if (!sees(spec, s.past + i, t)) continue;
          const int64_t key = (s.first_key + t) * spec.kv_heads + h / group;
          double x = 0, dweight = 0, slope = 1;
          for (int64_t d = 0; d < dim; ++d)
            x += double(p.q[size_t(row * dim + d)]) * double(p.k[size_t(key * dim + d)]);
          x *= double(spec.scale);
          if (spec.softcap > 0) {
            const double tanh = std::tanh(x / double(spec.softcap));
            x = double(spec.softcap) * tanh, slope = 1 - tanh * tanh;
          }
          if (spec.slopes) x -= double(spec.slopes[h]) * double(std::abs(t - s.past - i));
          const double weight = std::exp(x - forward.lse[size_t(row)]);
          for (int64_t d = 0; d < v_dim; ++d) {
            dweight += double(dout[size_t(row * v_dim + d)]) * double(p.v[size_t(key * v_dim + d)]);
            g.dv[size_t(key * v_dim + d)] += weight * double(dout[size_t(row * v_dim + d)]);
          }
          const double dx = weight * (dweight - dot) * slope * double(spec.scale);
          for (int64_t d = 0; d < dim; ++d) {
            g.dq[size_t(row * dim + d)] += dx * double(p.k[size_t(key * dim + d)]);
            g.dk[size_t(key * dim + d)] += dx * double(p.q[size_t(row * dim + d)]);
          }
        }
      }
  return g;
}

std::vector<AttentionSpec> specs() {
  static const std::vector<float> sinks = {0.5f, -1, 2, 0, 1, -2}, slopes = {0.5f, 0.1f, 0.01f, 0.7f, 0.3f, 0.2f};
  std::vector<AttentionSpec> all;
  for (AttentionSpec s : {AttentionSpec{.heads = 1, .kv_heads = 1, .head_dim = 16, .v_dim = 16},
                          AttentionSpec{.heads = 6, .kv_heads = 2, .head_dim = 7, .v_dim = 37}}) {
    s.scale = 1 / std::sqrt(float(s.head_dim));
    all.push_back(s);
    all.push_back(s), all.back().window = 40;
    all.push_back(s), all.back().causal = false;
    all.push_back(s), all.back().causal = false, all.back().window = 90;
    all.push_back(s), all.back().softcap = 1.5f;
    all.push_back(s), all.back().sinks = sinks.data(), all.back().softcap = 4, all.back().window = 3;
    for (const int64_t chunk : {3, 30, 128}) all.push_back(s), all.back().chunk = chunk;
    all.push_back(s), all.back().chunk = 60, all.back().causal = false;
    all.push_back(s), all.back().chunk = 60, all.back().window = 25;
    all.push_back(s), all.back().slopes = slopes.data(), all.back().softcap = 2;
    all.push_back(s), all.back().slopes = slopes.data(), all.back().causal = false;
  }
  return all;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(got.size(), expected.size());
  double size = 1e-3;
  for (const double x : expected) size = std::max(size, std::fabs(x));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 4e-6 * size) << what << " at " << i;
}

TEST(AttentionBackward, IsNearTheExactOneForEverySpec) {
  for (const AttentionSpec& spec : specs()) {
    const Problem p(spec, {1, 70, 0, 150, 5}, 21);
    const auto dout = normal(p.tokens * spec.heads * spec.v_dim, 22);
    const ExactGradients e = exact_gradients(p, dout);
    on_every_isa([&] {
      const Gradients g = gradients(serial_executor(), p, dout);
      expect_near(g.dq, e.dq, "dq");
      expect_near(g.dk, e.dk, "dk");
      expect_near(g.dv, e.dv, "dv");
      expect_near(g.dsinks, e.dsinks, "dsinks");
    });
  }
}

TEST(AttentionBackward, HasTheSameBitsForAnyNumberOfThreadsAndInstructionSet) {
  for (const AttentionSpec& spec : specs()) {
    const Problem p(spec, {330}, 23);  // one sequence: the two-pass cut for the teams
    const auto dout = normal(p.tokens * spec.heads * spec.v_dim, 24);
    const Gradients first = gradients(serial_executor(), p, dout);
    on_every_isa([&] {
      for (Executor* const executor : {&serial_executor(), &pool_of_five()}) {
        if (isa() == Isa::reference && executor == &serial_executor()) continue;  // slow; the vectors ran it
        const Gradients g = gradients(*executor, p, dout);
        EXPECT_TRUE(same_bits(g.dq, first.dq) && same_bits(g.dk, first.dk) && same_bits(g.dv, first.dv));
        EXPECT_TRUE(same_bits(g.dsinks, first.dsinks));
      }
    });
  }
}

TEST(AttentionBackward, GoesThroughKeysOfAnotherLength) {
  AttentionSpec spec{.heads = 2, .kv_heads = 1, .head_dim = 8, .v_dim = 12, .scale = 0.3f, .causal = false};
  Problem p(spec, {});
  p.sequences = {{.first_query = 0, .queries = 9, .keys = 100, .first_key = 3},
                 {.first_query = 9, .queries = 2, .keys = 0}};
  p.tokens = 11, p.kv_tokens = 103;
  p.fill(25, 1);
  const auto dout = normal(11 * 2 * 12, 26);
  const ExactGradients e = exact_gradients(p, dout);
  on_every_isa([&] {
    const Gradients g = gradients(pool_of_five(), p, dout);
    expect_near(g.dq, e.dq, "dq");
    for (int64_t i = 0; i < 3 * 8; ++i) EXPECT_EQ(g.dk[size_t(i)], 9.0f);  // tokens of no sequence
    expect_near({g.dk.begin() + 24, g.dk.end()}, {e.dk.begin() + 24, e.dk.end()}, "dk");
    expect_near({g.dv.begin() + 36, g.dv.end()}, {e.dv.begin() + 36, e.dv.end()}, "dv");
  });
}

TEST(AttentionBackward, KeepsSequencesApart) {
  const AttentionSpec spec = specs()[0];
  Problem p(spec, {40, 50}, 27);
  auto dout = normal(90 * 16, 28);
  const Gradients clean = gradients(serial_executor(), p, dout);
  for (int64_t i = 40 * 16; i < 90 * 16; ++i) p.v[size_t(i)] = NAN, dout[size_t(i)] = INFINITY;
  const Gradients g = gradients(serial_executor(), p, dout);
  EXPECT_TRUE(same_bits(std::vector<float>(g.dk.begin(), g.dk.begin() + 640),
                        std::vector<float>(clean.dk.begin(), clean.dk.begin() + 640)));
}

}  // namespace
}  // namespace easydel::kernels
