#include "easydel/kernels/loops.h"
#include "kernels/attention_backward_support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

// Every number one of bf16.
Problem rounded(Problem p) {
  for (auto* const x : {&p.q, &p.k, &p.v}) *x = widened(narrowed(*x));
  return p;
}
std::vector<float> rounded(const std::vector<float>& x) { return widened(narrowed(x)); }

// Calls check() on every instruction set that has products of pairs or tiles.
void on_sets_with_pairs(const std::function<void()>& check) {
  on_every_isa([&] {
    if (loops().attention.backward_bf16) check();
  });
}

// Both numbers that are rounded are off by 2^-9 at most, which on the average of many is a third of a hundredth.
void expect_near(const std::vector<float>& got, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(got.size(), expected.size());
  double error = 0, size = 0, most = 0, worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double off = std::fabs(got[i] - expected[i]);
    error += off * off, size += expected[i] * expected[i];
    most = std::max(most, std::fabs(expected[i])), worst = std::max(worst, off);
    ASSERT_FALSE(std::isnan(got[i])) << what << " at " << i;
  }
  EXPECT_LE(std::sqrt(error), 0.004 * std::sqrt(size)) << what;
  EXPECT_LE(worst, 0.008 * most) << what;
}

TEST(AttentionBackwardPairs, AreNearTheExactGradientsForEverySpec) {
  std::vector<AttentionSpec> all = gradient_specs();
  all.push_back({.heads = 3, .kv_heads = 1, .head_dim = 64, .v_dim = 64, .scale = 0.125f});
  all.push_back({.heads = 2, .kv_heads = 2, .head_dim = 80, .v_dim = 128, .scale = 0.1f, .softcap = 5});
  for (const AttentionSpec& spec : all) {
    const Problem p = rounded(Problem(spec, {1, 70, 0, 150, 5, 2, 193}, 31));
    const auto dout = rounded(normal(p.tokens * spec.heads * spec.v_dim, 32));
    const ExactGradients e = exact_gradients(p, dout);
    SCOPED_TRACE(&spec - all.data());
    on_every_isa([&] {
      if (isa() == Isa::reference) return;  // slow; the vectors run it
      const Gradients g = gradients<bf16>(serial_executor(), p, dout);
      expect_near(g.dq, e.dq, "dq");
      expect_near(g.dk, e.dk, "dk");
      expect_near(g.dv, e.dv, "dv");
      if (!loops().attention.backward_bf16) return;
      const Gradients by_fmas = gradients(serial_executor(), p, dout);
      EXPECT_FALSE(same_bits(g.dk, by_fmas.dk));
    });
  }
}

TEST(AttentionBackwardPairs, HaveTheSameBitsForAnyNumberOfThreads) {
  for (const AttentionSpec& spec : gradient_specs())
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{410}, {30, 500, 100}}) {
      const Problem p(spec, lengths, 33);
      const auto dout = normal(p.tokens * spec.heads * spec.v_dim, 34);
      on_sets_with_pairs([&] {
        const Gradients first = gradients<bf16>(serial_executor(), p, dout);
        for (Executor* const executor : {&pool_of_two(), &pool_of_five()}) {
          const Gradients g = gradients<bf16>(*executor, p, dout);
          EXPECT_TRUE(same_bits(g.dq, first.dq) && same_bits(g.dk, first.dk) && same_bits(g.dv, first.dv));
          EXPECT_TRUE(same_bits(g.dsinks, first.dsinks));
        }
      });
    }
}

TEST(AttentionBackwardPairs, GoThroughKeysOfAnotherLength) {
  const Problem p = rounded(with_keys_of_another_length());
  const auto dout = rounded(normal(11 * 2 * 12, 26));
  const ExactGradients e = exact_gradients(p, dout);
  on_sets_with_pairs([&] {
    const Gradients g = gradients<bf16>(pool_of_five(), p, dout);
    expect_near(g.dq, e.dq, "dq");
    for (size_t i = 0; i < 3 * 8; ++i) EXPECT_EQ(g.dk[i], 9.0f);  // tokens of no sequence
    expect_near({g.dk.begin() + 24, g.dk.end()}, {e.dk.begin() + 24, e.dk.end()}, "dk");
    expect_near({g.dv.begin() + 36, g.dv.end()}, {e.dv.begin() + 36, e.dv.end()}, "dv");
  });
}

TEST(AttentionBackwardPairs, KeepSequencesApart) {
  const AttentionSpec spec = gradient_specs()[0];
  Problem p(spec, {41, 50}, 27);
  auto dout = normal(91 * 16, 28);
  Problem broken = p;
  auto broken_dout = dout;
  for (int64_t i = 41 * 16; i < 91 * 16; ++i) {
    const size_t at = size_t(i);
    broken.q[at] = broken.k[at] = broken.v[at] = NAN, broken_dout[at] = INFINITY;
  }
  const auto of_first = [](const std::vector<float>& x) { return std::vector<float>(x.begin(), x.begin() + 41 * 16); };
  on_sets_with_pairs([&] {
    const Gradients clean = gradients<bf16>(serial_executor(), p, dout);
    const Gradients g = gradients<bf16>(serial_executor(), broken, broken_dout);
    EXPECT_TRUE(same_bits(of_first(g.dq), of_first(clean.dq)));
    EXPECT_TRUE(same_bits(of_first(g.dk), of_first(clean.dk)));
    EXPECT_TRUE(same_bits(of_first(g.dv), of_first(clean.dv)));
  });
}

}  // namespace
}  // namespace easydel::kernels
