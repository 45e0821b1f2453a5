// Every kernel except the products, with inputs that are rare in real runs: one row, odd lengths, empty sequences,
// zeros, denormals, huge numbers, infinities. The bits are the same on every instruction set, and numbers that are not
// finite affect only their own row.
#include <span>

#include "easydel/kernels/attention.h"
#include "easydel/kernels/fused.h"
#include "easydel/kernels/log_probability.h"
#include "easydel/kernels/recurrence.h"
#include "kernels/attention_support.h"
#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;
using Numbers = std::vector<float>;

Numbers room(int64_t count) { return Numbers(static_cast<size_t>(count)); }

// compute() returns all results of a kernel; the sign of a NaN is ignored.
void expect_one_set_of_bits(const std::string& what, const std::function<Numbers()>& compute) {
  Numbers expected;
  on_every_isa([&] {
    const Numbers got = compute();
    if (expected.empty()) expected = got;
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_TRUE(std::memcmp(&got[i], &expected[i], sizeof(float)) == 0 ||
                  (std::isnan(got[i]) && std::isnan(expected[i])))
          << what << ", element " << i << ": " << got[i] << " against " << expected[i];
  });
}

Numbers joined(std::initializer_list<Numbers> parts) {
  Numbers all;
  for (const Numbers& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

void expect_finite(const std::string& what, std::span<const float> x) {
  for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(std::isfinite(x[i])) << what << ", element " << i << ": " << x[i];
}

const int64_t lengths[] = {1, 7, 16, 33, 130};

TEST(HostileNumbers, LeaveNormsOneSetOfBitsAndEachRowToItself) {
  constexpr int64_t rows = 5;
  for (const int64_t n : lengths) {
    Numbers x = hostile(rows * n, 1), dy = normal(rows * n, 2), w = hostile(n, 3), b = normal(n, 4);
    std::fill_n(x.begin() + n, n, 0.0f);
    x[size_t(2 * n + n / 2)] = INFINITY;
    for (const float eps : {1e-6f, 1e-30f}) {
      const NormSpec spec{.eps = eps};
      Numbers y;
      expect_one_set_of_bits(str("rms_norm of ", n), [&] {
        y = room(rows * n);
        Numbers rstd = room(rows), dx = room(rows * n), dw = room(n);
        rms_norm(pool_of_two(), spec, {x.data(), n}, {w.data(), n}, rows, n, {y.data(), n}, rstd.data());
        rms_norm_backward(pool_of_two(), spec, {dy.data(), n}, {x.data(), n}, {w.data(), n}, rstd.data(), 2, n,
                          {dx.data(), n}, dw.data());
        return joined({y, rstd, dx, dw});
      });
      expect_finite("rms_norm", std::span(y).first(size_t(2 * n)));
      expect_finite("rms_norm", std::span(y).subspan(size_t(3 * n)));
      expect_one_set_of_bits(str("layer_norm of ", n), [&] {
        y = room(rows * n);
        Numbers moments = room(2 * rows), dx = room(rows * n), dw = room(n), db = room(n);
        layer_norm(pool_of_two(), spec, {x.data(), n}, {w.data(), n}, {b.data(), n}, rows, n, {y.data(), n},
                   moments.data());
        layer_norm_backward(pool_of_two(), spec, {dy.data(), n}, {x.data(), n}, {w.data(), n}, moments.data(), 2, n,
                            {dx.data(), n}, dw.data(), db.data());
        return joined({y, moments, dx, dw, db});
      });
      expect_finite("layer_norm", std::span(y).first(size_t(2 * n)));
      expect_finite("layer_norm", std::span(y).subspan(size_t(3 * n)));
    }
  }
}

TEST(HostileNumbers, LeaveActivationsOneSetOfBits) {
  for (const int64_t n : lengths) {
    Numbers gate = hostile(n, 5), up = hostile(n, 6), dy = normal(n, 7);
    gate.front() = -INFINITY, up.back() = INFINITY;
    for (const Activation kind : {Activation::silu, Activation::gelu, Activation::gelu_tanh})
      expect_one_set_of_bits(str("activate ", n), [&] {
        Numbers y = room(n), dgate = room(n), dup = room(n);
        activate(serial_executor(), kind, {gate.data(), n}, {up.data(), n}, 1, n, {y.data(), n});
        activate_backward(serial_executor(), kind, {dy.data(), n}, {gate.data(), n}, {up.data(), n}, 1, n,
                          {dgate.data(), n}, {dup.data(), n});
        return joined({y, dgate, dup});
      });
  }
}

TEST(HostileNumbers, LeaveRotationsOneSetOfBits) {
  for (const int64_t pairs : {1, 3, 8, 20}) {
    const int64_t dim = 2 * pairs + 1;
    Numbers x = hostile(2 * dim, 8);
    x[0] = INFINITY;
    const Numbers cos = normal(pairs, 9), sin = normal(pairs, 10);
    for (const bool interleaved : {false, true})
      expect_one_set_of_bits(str("rotate ", pairs), [&] {
        Numbers y = room(2 * dim);
        rotate(serial_executor(), heads_of(x, 2, dim), heads_of(y, 2, dim), 1, 2, dim, pairs, cos.data(), sin.data(),
               pairs, interleaved, false);
        return y;
      });
  }
}

TEST(HostileNumbers, LeaveLossesOneSetOfBits) {
  for (const int64_t n : lengths) {
    Numbers logits = hostile(2 * n, 11);
    const std::vector<int64_t> labels = {0, n - 1};
    const Numbers scales = {1, -0.5f};
    for (const float infinite : {0.0f, -INFINITY}) {
      if (n > 1) logits[size_t(n)] = infinite;  // not the row's label
      expect_one_set_of_bits(str("cross_entropy of ", n), [&] {
        Numbers own = logits, loss = room(2), lse = room(2);
        cross_entropy(serial_executor(), {.z_loss = 0.1f}, {own.data(), n}, labels.data(), 2, n, loss.data(),
                      lse.data(), scales.data());
        expect_finite("cross_entropy", lse);
        return joined({own, loss, lse});
      });
      expect_one_set_of_bits(str("log_probability of ", n), [&] {
        Numbers logps = room(2), lse = room(2);
        log_probabilities(serial_executor(), {logits.data(), n}, labels.data(), 2, n,
                          {.logps = logps.data(), .lse = lse.data()});
        expect_finite("log_probability", lse);
        return joined({logps, lse});
      });
    }
  }
}

TEST(HostileNumbers, LeaveTheOptimizerOneSetOfBitsAndEachParameterToItself) {
  for (const int64_t n : lengths) {
    const Numbers parameters = hostile(n, 12);
    Numbers gradient = hostile(n, 13);
    if (n > 1) gradient[1] = INFINITY;
    expect_one_set_of_bits(str("adamw of ", n), [&] {
      Numbers p = parameters, m = room(n), v = room(n);
      std::vector<bf16> copy(static_cast<size_t>(n));
      adamw(serial_executor(), {}, n, p.data(), gradient.data(), DType::f32, m.data(), v.data(), copy.data());
      for (int64_t i = 0; i < n; ++i) EXPECT_TRUE(i == 1 || std::isfinite(p[size_t(i)])) << i;
      return joined({p, m, v, widened(copy)});
    });
    const Numbers x = hostile(n, 14);
    expect_one_set_of_bits("sum_of_squares",
                           [&] { return Numbers{float(sum_of_squares(serial_executor(), x.data(), DType::f32, n))}; });
  }
}

TEST(HostileNumbers, LeaveAttentionOneSetOfBitsAndEachSequenceToItself) {
  for (const int64_t dim : {1, 32, 50}) {
    const AttentionSpec spec{.heads = 3, .kv_heads = 1, .head_dim = dim, .v_dim = dim, .scale = 0.3f};
    Problem p(spec, {1, 0, 65, 3, 70});
    p.q = hostile(p.tokens * 3 * dim, 15), p.k = hostile(p.tokens * dim, 16), p.v = hostile(p.tokens * dim, 17);
    p.k[size_t(20 * dim)] = INFINITY, p.v[size_t(30 * dim)] = -INFINITY;  // of the sequence of 65
    const auto dout = normal(p.tokens * 3 * dim, 18);
    expect_one_set_of_bits(str("attention of ", dim), [&] {
      const Attended a = attended(pool_of_two(), p);
      const auto row = [&](int64_t token) { return size_t(token * 3 * dim); };
      expect_finite("before", std::span(a.out).first(row(1)));
      expect_finite("behind", std::span(a.out).subspan(row(66)));
      return joined({a.out, a.lse});
    });
    const auto k = narrowed(p.k), v = narrowed(p.v);
    const AttentionSequence last = {.queries = 1, .past = 69, .keys = 70, .first_key = 69};
    expect_one_set_of_bits(str("decoding with ", dim), [&] {
      Numbers out = room(3 * dim);
      attend(pool_of_two(), spec, {&last, 1}, p.q_heads(), heads_of(k, 1, dim), heads_of(v, 1, dim),
             heads_of(out, 3, dim), nullptr);
      expect_finite("decoding", out);
      return out;
    });
  }
}

TEST(HostileNumbers, LeaveRecurrencesOneSetOfBits) {
  for (const auto& [k_dim, v_dim] : {std::pair<int64_t, int64_t>{1, 1}, {5, 19}, {16, 33}}) {
    constexpr int64_t tokens = 9, heads = 2;
    const Numbers q = hostile(tokens * heads * k_dim, 19), k = normal(tokens * heads * k_dim, 20),
                  v = hostile(tokens * heads * v_dim, 21), d_o = normal(tokens * heads * v_dim, 22);
    Numbers rate = hostile(tokens * heads, 23);
    for (float& r : rate) r = -std::abs(r);
    rate[3] = -INFINITY;  // forgets all
    const RecurrenceSpec spec{.heads = heads, .groups = heads, .k_dim = k_dim, .v_dim = v_dim, .decay = Decay::scalar};
    const RecurrenceInputs in{.q = q.data(), .k = k.data(), .v = v.data(), .rate = rate.data()};
    const RecurrenceRange ranges[] = {{0, 1}, {1, 1}, {1, tokens}};
    expect_one_set_of_bits(str("recurrence of ", k_dim, " by ", v_dim), [&] {
      Numbers o = room(tokens * heads * v_dim);
      recurrence(pool_of_two(), spec, in, ranges, o.data());
      expect_finite("recurrence", o);
      return o;
    });
    expect_one_set_of_bits("its gradient", [&] {
      Numbers dq = room(tokens * heads * k_dim), dk = dq, dv = room(tokens * heads * v_dim), dr = room(tokens * heads);
      recurrence_backward(pool_of_two(), spec, in, ranges, d_o.data(),
                          {.q = dq.data(), .k = dk.data(), .v = dv.data(), .rate = dr.data()});
      return joined({dq, dk, dv});
    });
  }
}

}  // namespace
}  // namespace easydel::kernels
