#include "kernels/attention_backward_support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

void expect_near(const std::vector<float>& got, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(got.size(), expected.size());
  double size = 1e-3;
  for (const double x : expected) size = std::max(size, std::fabs(x));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 4e-6 * size) << what << " at " << i;
}

TEST(AttentionBackward, IsNearTheExactOneForEverySpec) {
  for (const AttentionSpec& spec : gradient_specs()) {
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
  for (const AttentionSpec& spec : gradient_specs()) {
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
  const Problem p = with_keys_of_another_length();
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
  const AttentionSpec spec = gradient_specs()[0];
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
