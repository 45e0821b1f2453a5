#include "easydel/kernels/convolution.h"

#include <cmath>

#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

struct Shape {
  int64_t channels, width;
  std::vector<int64_t> offsets;
};
const Shape shapes[] = {
    {1, 1, {0, 1}}, {5, 4, {0, 0, 1, 3, 3}}, {16, 4, {0, 9}}, {37, 3, {0, 2, 40, 41}}, {130, 7, {0, 3, 300}}};

std::vector<ConvolutionRange> ranges_of(const Shape& s, float* states) {
  std::vector<ConvolutionRange> ranges;
  for (size_t i = 0; i + 1 < s.offsets.size(); ++i) {
    float* const state = states ? states + int64_t(i) * (s.width - 1) * s.channels : nullptr;
    ranges.push_back({s.offsets[i], s.offsets[i + 1], state, state});
  }
  return ranges;
}

// The contract of convolution.h, written as it reads.
std::vector<float> by_contract(const Shape& s, const std::vector<float>& x, const std::vector<float>& weight,
                               const float* bias, const float* states) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i + 1 < s.offsets.size(); ++i)
    for (int64_t t = s.offsets[i]; t < s.offsets[i + 1]; ++t)
      for (int64_t c = 0; c < s.channels; ++c) {
        float sum = bias ? bias[c] : 0;
        for (int64_t w = 0; w < s.width; ++w) {
          const int64_t from = t - s.width + 1 + w, held = from - s.offsets[i] + s.width - 1;
          float value = 0;
          if (from >= s.offsets[i])
            value = x[size_t(from * s.channels + c)];
          else if (states)
            value = states[(int64_t(i) * (s.width - 1) + held) * s.channels + c];
          sum = std::fma(weight[size_t(c * s.width + w)], value, sum);
        }
        y[size_t(t * s.channels + c)] = sum;
      }
  return y;
}

TEST(Convolution, HasTheBitsOfTheContractOnEveryInstructionSet) {
  for (const Shape& s : shapes)
    for (const bool rough : {false, true})
      for (const bool more : {false, true}) {  // a bias and states
        const int64_t tokens = s.offsets.back(), held = int64_t(s.offsets.size() - 1) * (s.width - 1) * s.channels;
        const auto make = [&](int64_t n, unsigned seed) { return rough ? hostile(n, seed) : normal(n, seed); };
        auto x = make(tokens * s.channels, 1);
        if (rough && !x.empty()) x.back() = INFINITY;
        const auto weight = make(s.channels * s.width, 2), bias = make(s.channels, 3), states = make(held, 4);
        const auto expected = by_contract(s, x, weight, more ? bias.data() : nullptr, more ? states.data() : nullptr);
        const ConvolutionSpec spec{s.channels, s.width, weight.data(), more ? bias.data() : nullptr};
        on_every_isa([&] {
          for (Executor* const executor : {&serial_executor(), &pool_of_five()}) {
            std::vector<float> y(x.size()), own = states;
            convolve(*executor, spec, ranges_of(s, more ? own.data() : nullptr), {x.data(), s.channels},
                     {y.data(), s.channels});
            for (size_t i = 0; i < y.size(); ++i)
              ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(y[i]) : std::memcmp(&y[i], &expected[i], 4) == 0) << i;
          }
        });
      }
}

TEST(Convolution, RoundsABf16ResultOnceAndReadsByStride) {
  constexpr int64_t tokens = 7, channels = 21, width = 4, stride = 30;
  const auto x = narrowed(normal(tokens * stride, 5));
  const auto weight = normal(channels * width, 6);
  const ConvolutionRange range{0, tokens};
  const ConvolutionSpec spec{channels, width, weight.data()};
  on_every_isa([&] {
    std::vector<float> wide(tokens * channels), dense;
    std::vector<bf16> y(tokens * channels);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < channels; ++c) dense.push_back(widen(x[size_t(t * stride + c)]));
    convolve(serial_executor(), spec, {&range, 1}, {dense.data(), channels}, {wide.data(), channels});
    convolve(serial_executor(), spec, {&range, 1}, {x.data(), stride}, {y.data(), channels});
    EXPECT_TRUE(same_bits(y, narrowed(wide)));
  });
}

TEST(ConvolutionGradients, AreNearTheExactOnesWithTheSameBitsForAnyNumberOfThreadsAndEverySet) {
  for (const Shape& s : shapes) {
    const int64_t tokens = s.offsets.back(), n = s.channels;
    const auto x = normal(tokens * n, 7), dy = normal(tokens * n, 8), weight = normal(n * s.width, 9);
    const ConvolutionSpec spec{n, s.width, weight.data()};
    std::vector<float> first;
    on_every_isa([&] {
      for (Executor* const executor : {&serial_executor(), &pool_of_five()}) {
        std::vector<float> all(size_t(tokens * n + n * s.width + n));
        float *const dx = all.data(), *const dweight = dx + tokens * n, *const dbias = dweight + n * s.width;
        convolve_backward(*executor, spec, ranges_of(s, nullptr), {x.data(), n}, {dy.data(), n}, {dx, n}, dweight,
                          dbias);
        if (first.empty()) first = all;
        ASSERT_TRUE(same_bits(all, first));
      }
    });
    std::vector<double> exact(first.size()), size(first.size());
    const auto add = [&](int64_t at, double term) { exact[size_t(at)] += term, size[size_t(at)] += std::abs(term); };
    for (size_t i = 0; i + 1 < s.offsets.size(); ++i)
      for (int64_t t = s.offsets[i]; t < s.offsets[i + 1]; ++t)
        for (int64_t c = 0; c < n; ++c) {
          const double d = dy[size_t(t * n + c)];
          add(tokens * n + n * s.width + c, d);
          for (int64_t w = 0; w < s.width; ++w) {
            const int64_t from = t - s.width + 1 + w;
            if (from < s.offsets[i]) continue;
            add(from * n + c, d * double(weight[size_t(c * s.width + w)]));
            add(tokens * n + c * s.width + w, d * double(x[size_t(from * n + c)]));
          }
        }
    for (size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(first[i], exact[i], 4 * 0x1p-24 * size[i] + 1e-30) << i;
  }
}

}  // namespace
}  // namespace easydel::kernels
