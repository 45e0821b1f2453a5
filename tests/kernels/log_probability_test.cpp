#include "easydel/kernels/log_probability.h"

#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

struct Exact {
  std::vector<double> logps, lse;
};
Exact exact(const std::vector<float>& logits, const std::vector<int64_t>& labels, int64_t n) {
  Exact e;
  for (size_t r = 0; r < labels.size(); ++r) {
    const float* const row = logits.data() + int64_t(r) * n;
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i) top = std::max(top, double(row[i]));
    for (int64_t i = 0; i < n; ++i) sum += std::exp(double(row[i]) - top);
    e.lse.push_back(top + std::log(sum));
    e.logps.push_back(double(row[labels[r]]) - e.lse.back());
  }
  return e;
}

TEST(LogProbability, IsNearTheExactOneWithOneSetOfBits) {
  for (const int64_t n : {1, 7, 16, 500}) {
    constexpr int64_t rows = 9;
    auto logits = normal(rows * n, 61, 4);
    for (int64_t i = 0; i < n; ++i) logits[size_t(n + i)] += 3e4f;  // far up
    if (n > 1) logits[size_t(2 * n + n - 1)] = -INFINITY;           // an entry that cannot be
    std::vector<int64_t> labels;
    for (int64_t r = 0; r < rows; ++r) labels.push_back(r * 5 % std::max<int64_t>(1, n - 1));
    const Exact e = exact(logits, labels, n);
    std::vector<float> first;
    on_every_isa([&] {
      for (Executor* const executor : {&serial_executor(), &pool_of_five()}) {
        std::vector<float> logps(rows), lse(rows);
        log_probabilities(*executor, {logits.data(), n}, labels.data(), rows, n,
                          {.logps = logps.data(), .lse = lse.data()});
        for (size_t r = 0; r < rows; ++r) {
          ASSERT_NEAR(lse[r], e.lse[r], 1e-6 * std::max(1.0, std::fabs(e.lse[r])));
          ASSERT_NEAR(logps[r], e.logps[r], 3e-6 * std::max(1.0, std::fabs(e.logps[r])));
        }
        logps.insert(logps.end(), lse.begin(), lse.end());
        if (first.empty()) first = logps;
        EXPECT_TRUE(same_bits(logps, first));
      }
    });
  }
}

TEST(LogProbability, TellsEntropyAndWhetherTheLabelIsTheFirstOfTheLargest) {
  for (const int64_t n : {1, 7, 16, 77, 500}) {
    constexpr int64_t rows = 5;
    auto logits = normal(rows * n, 66, 3);
    if (n > 2) logits[size_t(n + n - 1)] = -INFINITY;
    std::vector<int64_t> labels;
    for (int64_t r = 0; r < rows; ++r) {
      const auto row = logits.begin() + r * n;
      labels.push_back(std::max_element(row, row + n) - row);
    }
    // One label is wrong; one logit equals an earlier one.
    if (n > 1) labels[2] = (labels[2] + 1) % n;
    if (n > 1) logits[size_t(3 * n)] = logits[size_t(3 * n + n - 1)] = 50, labels[3] = n - 1;
    const Exact e = exact(logits, labels, n);
    std::vector<float> first, plain(rows), plain_lse(rows);
    log_probabilities(serial_executor(), {logits.data(), n}, labels.data(), rows, n,
                      {.logps = plain.data(), .lse = plain_lse.data()});
    on_every_isa([&] {
      std::vector<float> logps(rows), lse(rows), entropy(rows);
      bool correct[rows];
      log_probabilities(pool_of_two(), {logits.data(), n}, labels.data(), rows, n,
                        {.logps = logps.data(), .lse = lse.data(), .entropy = entropy.data(), .correct = correct});
      EXPECT_TRUE(same_bits(logps, plain) && same_bits(lse, plain_lse));
      for (int64_t r = 0; r < rows; ++r) {
        double expected = 0;
        for (int64_t i = 0; i < n; ++i) {
          const double logp = double(logits[size_t(r * n + i)]) - e.lse[size_t(r)];
          if (std::isfinite(logp)) expected -= std::exp(logp) * logp;
        }
        ASSERT_NEAR(entropy[size_t(r)], expected, 2e-6 * std::max(1.0, expected)) << "row " << r << " of " << n;
        EXPECT_EQ(correct[r], n == 1 || (r != 2 && r != 3)) << "row " << r << " of " << n;
      }
      if (first.empty()) first = entropy;
      EXPECT_TRUE(same_bits(entropy, first));
    });
  }
}

TEST(LogProbability, HasTheGradientOfEachOfItsResults) {
  constexpr int64_t rows = 6, n = 77;
  const auto logits = normal(rows * n, 62, 2), of_label = normal(rows, 63), of_uniform = normal(rows, 64),
             of_lse = normal(rows, 65);
  const std::vector<int64_t> labels = {0, 76, 5, 16, 15, 40};
  const Exact e = exact(logits, labels, n);
  const std::vector<float> lse(e.lse.begin(), e.lse.end());
  const auto numbers = [](bool wanted, const std::vector<float>& x) { return wanted ? x.data() : nullptr; };
  for (const int which : {1, 2, 4, 7}) {
    const LogProbabilityGradient g{.lse = lse.data(),
                                   .of_label = numbers(which & 1, of_label),
                                   .of_uniform = numbers(which & 2, of_uniform),
                                   .of_lse = numbers(which & 4, of_lse),
                                   .scale = 0.5f};
    std::vector<float> first;
    on_every_isa([&] {
      auto d = logits;
      std::vector<bf16> rounded(d.size());
      log_probabilities_backward(pool_of_two(), g, {d.data(), n}, labels.data(), rows, n, {rounded.data(), n});
      log_probabilities_backward(pool_of_two(), g, {d.data(), n}, labels.data(), rows, n, {d.data(), n});
      EXPECT_TRUE(same_bits(rounded, narrowed(d)));
      if (first.empty()) first = d;
      EXPECT_TRUE(same_bits(d, first));
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < n; ++i) {
          const double p = std::exp(double(logits[size_t(r * n + i)]) - e.lse[size_t(r)]), own = i == labels[size_t(r)];
          double exact_d = 0;
          if (which & 1) exact_d += double(of_label[size_t(r)]) * (own - p);
          if (which & 2) exact_d += double(of_uniform[size_t(r)]) * (1.0 / n - p);
          if (which & 4) exact_d += double(of_lse[size_t(r)]) * p;
          ASSERT_NEAR(d[size_t(r * n + i)], 0.5 * exact_d, 2e-6);
        }
    });
  }
}

TEST(LogProbability, RefusesALabelOutsideTheVocabulary) {
  const std::vector<float> logits(8);
  std::vector<float> logps(2), lse(2);
  for (const int64_t label : {-1, 4}) {
    const std::vector<int64_t> labels = {0, label};
    EXPECT_ANY_THROW(log_probabilities(serial_executor(), {logits.data(), 4}, labels.data(), 2, 4,
                                       {.logps = logps.data(), .lse = lse.data()}));
  }
}

}  // namespace
}  // namespace easydel::kernels
