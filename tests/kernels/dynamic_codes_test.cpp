// Blocks as dynamic codes: every instruction set has the codes and scales of the plain rule, with any number of
// threads.
#include "easydel/kernels/dynamic_codes.h"

#include <algorithm>
#include <limits>

#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

// Numbers like bitsandbytes': seven powers of ten, each with twice as many even steps as the one below it, 0 and 1.
DynamicCodes map_of(bool has_sign) {
  std::vector<float> all = {0, 1};
  double power = 1e-6;
  for (int e = 0; e < 7; ++e, power *= 10)
    for (int i = 0, count = has_sign ? 1 << e : 2 << e; i < count; ++i) {
      all.push_back(float(power * (0.1 + 0.9 * (i + 0.5) / count)));
      if (has_sign) all.push_back(-all.back());
    }
  std::ranges::sort(all);
  std::array<float, 256> numbers;
  std::ranges::copy(all, numbers.begin());
  return DynamicCodes(numbers);
}

const DynamicCodes& map(bool has_sign) {
  static const DynamicCodes with = map_of(true), without = map_of(false);
  return has_sign ? with : without;
}

struct Blocks {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
};

// The rule that dynamic_codes.h states, number by number.
Blocks expected(const DynamicCodes& of, const std::vector<float>& values, int64_t block) {
  Blocks out;
  for (size_t first = 0; first < values.size(); first += size_t(block)) {
    const size_t end = std::min(first + size_t(block), values.size());
    float most = 0;
    for (size_t i = first; i < end; ++i) most = std::max(most, std::fabs(values[i]));
    out.scales.push_back(most);
    const float inverse = 1.0f / most;
    for (size_t i = first; i < end; ++i) {
      const float step = (std::clamp(values[i] * inverse, -1.0f, 1.0f) + 1.0f) * 32767.5f + 0.5f;
      out.codes.push_back(most == 0 ? 0 : of.codes[step >= 0 ? size_t(std::min(step, 65535.0f)) : 0]);
    }
  }
  return out;
}

Blocks encoded(Executor& executor, const DynamicCodes& of, const std::vector<float>& values, int64_t block) {
  const auto count = int64_t(values.size());
  Blocks out{std::vector<uint8_t>(values.size()), std::vector<float>(size_t((count + block - 1) / block))};
  encode_blocks(executor, of, values.data(), count, block, out.codes.data(), out.scales.data());
  return out;
}

void expect_everywhere(const std::vector<float>& values, int64_t block) {
  for (const bool has_sign : {true, false}) {
    const Blocks plain = expected(map(has_sign), values, block);
    std::vector<float> numbers;
    for (size_t i = 0; i < values.size(); ++i)
      numbers.push_back(map(has_sign).numbers[plain.codes[i]] * plain.scales[i / size_t(block)]);
    on_every_isa([&] {
      for (Executor* const executor : {&serial_executor(), &pool_of_two()}) {
        const Blocks own = encoded(*executor, map(has_sign), values, block);
        const auto [at, wanted] = std::ranges::mismatch(own.codes, plain.codes);
        EXPECT_TRUE(at == own.codes.end()) << values[size_t(at - own.codes.begin())] << ": " << int(*at) << " against "
                                           << int(*wanted) << ", has_sign " << has_sign;
        EXPECT_TRUE(same_bits(own.scales, plain.scales));
        std::vector<float> back(values.size());
        decode_blocks(*executor, map(has_sign), plain.codes.data(), plain.scales.data(), int64_t(values.size()), block,
                      back.data());
        EXPECT_TRUE(same_bits(back, numbers));
      }
    });
  }
}

TEST(DynamicCodes, AreTheNearestNumbers) {
  for (const bool has_sign : {true, false})
    for (int64_t step = 0; step < DynamicCodes::steps; step += 7) {
      const double value = double(step) / 32767.5 - 1;
      double least = 9;
      for (const float number : map(has_sign).numbers) least = std::min(least, std::fabs(double(number) - value));
      const float own = map(has_sign).numbers[map(has_sign).codes[size_t(step)]];
      ASSERT_NEAR(std::fabs(double(own) - value), least, 1e-6) << step;
    }
}

TEST(DynamicCodes, AreThoseOfEveryStep) {
  std::vector<float> values;
  for (int64_t step = 0; step < DynamicCodes::steps; ++step) {
    const auto edge = float((double(step) - 0.5) / 32767.5 - 1);
    for (const float value :
         {float(double(step) / 32767.5 - 1), edge, std::nextafter(edge, -2.0f), std::nextafter(edge, 2.0f)}) {
      if (values.size() % 256 == 0) values.push_back(1);  // the block's scale
      values.push_back(value);
    }
  }
  expect_everywhere(values, 256);
}

TEST(DynamicCodes, OfHostileBlocks) {
  std::vector<float> values = hostile(20011, 5);
  std::fill_n(values.begin() + 512, 300, 0.0f);
  std::fill_n(values.begin() + 1024, 256, 1e-42f);
  std::fill_n(values.begin() + 2048, 256, -3e-39f);
  values[1300] = std::numeric_limits<float>::max();
  values[1600] = std::numeric_limits<float>::quiet_NaN();
  values[1900] = -std::numeric_limits<float>::quiet_NaN();
  for (const int64_t block : {int64_t(256), int64_t(64), int64_t(100)}) expect_everywhere(values, block);
  for (int64_t count = 1; count < 70; ++count) expect_everywhere(normal(count, unsigned(count)), 256);
}

TEST(DynamicCodes, RefuseNumbersThatAreNotEven) {
  std::array<float, 256> numbers;
  for (size_t i = 0; i < 256; ++i) numbers[i] = float(i) / 255 * float(i) / 255;
  EXPECT_THROW((void)DynamicCodes(numbers), std::exception);
}

}  // namespace
}  // namespace easydel::kernels
