#include "easydel/ops/recurrence.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "easydel/kernels/isa.h"
#include "easydel/ops/recurrence_reference.h"

namespace easydel::ops {
namespace {

struct Case {
  const char* name;
  int64_t groups, heads, k_dim, v_dim;
  char decay;  // n: none, s: scalar, k: by rows, v: by columns, m: by columns and slopes
  bool delta, before;
};
const Case cases[] = {
    {"linear attention", 2, 2, 5, 7, 'n', false, false},
    {"mamba2", 1, 4, 16, 32, 's', false, false},
    {"lightning", 3, 3, 8, 70, 's', false, false},
    {"gated delta", 2, 4, 8, 16, 's', true, false},
    {"plain delta", 2, 2, 9, 3, 'n', true, false},
    {"kimi delta", 4, 4, 8, 33, 'k', true, false},
    {"gated rows", 2, 2, 6, 6, 'k', false, false},
    {"mamba", 1, 3, 4, 64, 'm', false, false},
    {"rwkv", 1, 2, 1, 19, 'v', false, true},
    {"delta by columns", 1, 2, 3, 5, 'm', true, true},
};
const std::vector<int64_t> sequences = {0, 1, 1, 12, 29};

RecurrenceTensors draw(const Case& c, int64_t tokens) {
  at::manual_seed(7);
  const auto options = at::TensorOptions().dtype(at::kFloat);
  RecurrenceTensors in;
  in.q = at::randn({tokens, c.groups, c.k_dim}, options);
  in.k = at::randn({tokens, c.groups, c.k_dim}, options);
  if (c.delta) in.k = in.k / in.k.norm(2, -1, true);
  in.v = at::randn({tokens, c.heads, c.v_dim}, options);
  if (c.decay == 's') in.rate = -at::rand({tokens, c.heads}, options);
  if (c.decay == 'k') in.rate = -at::rand({tokens, c.heads, c.k_dim}, options);
  if (c.decay == 'v' || c.decay == 'm')
    in.by_column = at::rand({tokens, c.heads, c.v_dim}, options) * (c.decay == 'v' ? -1 : 1);
  if (c.decay == 'm') in.slopes = -at::rand({c.heads, c.k_dim, c.v_dim}, options) * 2;
  if (c.delta) in.beta = at::rand({tokens, c.heads}, options);
  return in;
}
RecurrenceTensors leaves(const RecurrenceTensors& in, at::ScalarType type) {
  const auto leaf = [&](const Tensor& t) { return t.defined() ? t.to(type, false, true).requires_grad_() : t; };
  return {leaf(in.q), leaf(in.k), leaf(in.v), leaf(in.rate), leaf(in.by_column), leaf(in.slopes), leaf(in.beta)};
}
std::vector<Tensor> list(const RecurrenceTensors& in) {
  return {in.q, in.k, in.v, in.rate, in.by_column, in.slopes, in.beta};
}

double distance(const Tensor& a, const Tensor& b) {
  const Tensor exact = b.to(at::kDouble);
  return ((a.to(at::kDouble) - exact).norm() / (exact.norm() + 1e-30)).item<double>();
}

TEST(Recurrence, AgreesWithDoublePrecisionForwardAndBackward) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const RecurrenceSpec spec{c.delta, c.before};
    const RecurrenceTensors in = draw(c, sequences.back()), fast = leaves(in, at::kFloat),
                            exact = leaves(in, at::kDouble);
    const Tensor o = recurrence(spec, fast, sequences), expected = recurrence_reference(spec, exact, sequences);
    EXPECT_LT(distance(o, expected), 2e-6);
    const Tensor up = at::randn(o.sizes());
    o.backward(up);
    expected.backward(up.to(at::kDouble));
    const auto got = list(fast), wanted = list(exact);
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i].defined()) {
        EXPECT_LT(distance(got[i].grad(), wanted[i].grad()), 5e-6) << "input " << i;
      }
  }
}

TEST(Recurrence, HandsOverItsStateWithTheSameBitsInAnyChunks) {
  const at::NoGradGuard no_gradient;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const RecurrenceSpec spec{c.delta, c.before};
    const int64_t tokens = 11;
    const RecurrenceTensors in = draw(c, tokens);
    const Tensor whole_state = at::zeros({1, c.heads, c.k_dim, c.v_dim}), state = at::zeros_like(whole_state);
    const Tensor whole = recurrence(spec, in, {0, tokens}, whole_state);
    int64_t begin = 0;
    for (const int64_t size : {1, 1, 4, 2, 3}) {
      const auto cut = [&](const Tensor& t) { return t.defined() ? t.narrow(0, begin, size) : t; };
      RecurrenceTensors part{cut(in.q), cut(in.k), cut(in.v), cut(in.rate), cut(in.by_column), in.slopes, cut(in.beta)};
      EXPECT_TRUE(recurrence(spec, part, {0, size}, state).equal(whole.narrow(0, begin, size)));
      begin += size;
    }
    EXPECT_TRUE(state.equal(whole_state));
    EXPECT_TRUE(recurrence(spec, in, {0, tokens}).equal(whole));
  }
}

TEST(Recurrence, HasTheSameBitsOnEveryInstructionSet) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const RecurrenceTensors in = draw(c, sequences.back());
    std::vector<Tensor> first;
    for (const kernels::Isa isa : kernels::available_isas()) {
      const kernels::UseIsa forced(isa);
      const RecurrenceTensors own = leaves(in, at::kFloat);
      std::vector<Tensor> all = {recurrence({c.delta, c.before}, own, sequences)};
      all[0].backward(at::ones_like(all[0]));
      for (const Tensor& t : list(own))
        if (t.defined()) all.push_back(t.grad());
      if (first.empty()) first = all;
      for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(all[i].equal(first[i])) << i;
    }
  }
}

TEST(RunningMaximum, GoesOnFromItsState) {
  at::manual_seed(3);
  const Tensor f = -at::rand({9, 5}), i = at::randn({9, 5});
  const RunningMaximum whole = running_maximum(f, i, {0, 9});
  Tensor m = i[0];
  EXPECT_TRUE(whole.after[0].equal(m));
  EXPECT_TRUE(whole.before[0].eq(-std::numeric_limits<float>::infinity()).all().item<bool>());
  for (int64_t t = 1; t < 9; ++t) {
    EXPECT_TRUE(whole.before[t].equal(m));
    m = at::maximum(m + f[t], i[t]);
    EXPECT_TRUE(whole.after[t].equal(m));
  }
  const Tensor state = at::full({1, 5}, -std::numeric_limits<float>::infinity());
  for (const auto& [begin, end] : {std::pair{0, 4}, std::pair{4, 5}, std::pair{5, 9}}) {
    const RunningMaximum part =
        running_maximum(f.slice(0, begin, end), i.slice(0, begin, end), {0, end - begin}, state);
    EXPECT_TRUE(part.after.equal(whole.after.slice(0, begin, end)));
    EXPECT_TRUE(part.before.equal(whole.before.slice(0, begin, end)));
  }
}

}  // namespace
}  // namespace easydel::ops
