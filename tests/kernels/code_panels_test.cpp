#include "easydel/kernels/code_panels.h"

#include "easydel/kernels/half.h"
#include "kernels/encoded_support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

// Codes of all values (e4m3 without NaN), with their numbers.
struct Coded {
  int64_t n, k;
  CodePanelsSpec spec;
  std::vector<uint8_t> codes;
  std::vector<float> scales, shifts;

  Coded(int64_t n, int64_t k, CodePanelsSpec with, CodeNumbers numbers) : n(n), k(k), spec(with) {
    const std::vector<float> table = normal(16, 3);
    std::copy(table.begin(), table.end(), spec.table.begin());
    std::mt19937 generator(4);
    for (int64_t i = 0; i < n * k; ++i) {
      uint8_t code = uint8_t(generator() % (spec.codes == PanelCodes::table4 ? 16 : 256));
      if (spec.codes == PanelCodes::e4m3 && (code & 0x7f) == 0x7f) code ^= 1;
      codes.push_back(code);
    }
    scales = hostile(n * groups(), 5), shifts = normal(n * groups(), 6, 10);
    for (auto* const of_groups : {&scales, &shifts})
      for (float& x : *of_groups) {
        if (numbers == CodeNumbers::bf16) x = widen(narrow(x));
        if (numbers == CodeNumbers::f16) x = std::clamp(rounded_to_half(x), -65504.0f, 65504.0f);
      }
  }
  int64_t groups() const {
    if (spec.is_ordered()) return std::ranges::max(spec.group_of_k) + 1;
    return spec.group > 0 ? divide_up(k, spec.group) : 1;
  }
  int64_t group_of(int64_t i) const {
    return spec.is_ordered() ? spec.group_of_k[size_t(i)] : spec.group > 0 ? i / spec.group : 0;
  }
  float code(int64_t i) const {
    const uint8_t code = codes[size_t(i)];
    return spec.codes == PanelCodes::i8     ? float(int8_t(code))
           : spec.codes == PanelCodes::u8   ? float(code)
           : spec.codes == PanelCodes::e4m3 ? widen(e4m3{code})
                                            : spec.table[code];
  }
  std::vector<float> values() const {
    std::vector<float> out;
    for (int64_t i = 0; i < n * k; ++i) {
      const size_t number = size_t(i / k * groups() + group_of(i % k));
      float value = (code(i) - (spec.shift == CodeShift::zeros ? shifts[number] : 0)) * scales[number];
      if (spec.shift == CodeShift::offsets) value += shifts[number];
      value *= spec.factor;
      if (spec.rounding == ValueRounding::bf16) value = widen(narrow(value));
      if (spec.rounding == ValueRounding::f16) value = rounded_to_half(value);
      out.push_back(value);
    }
    return out;
  }
  std::shared_ptr<CodePanels> panels() const {
    return std::make_shared<CodePanels>(
        serial_executor(),
        PanelSource{.codes = [this](int64_t first, int64_t count,
                                    uint8_t* to) { std::copy_n(codes.begin() + first * k, count * k, to); },
                    .scale = [this](int64_t row, int64_t group) { return scales[size_t(row * groups() + group)]; },
                    .shift = [this](int64_t row, int64_t group) { return shifts[size_t(row * groups() + group)]; }},
        n, k, spec);
  }
};

// Act order: each of k belongs to any of `groups`.
std::vector<int32_t> some_order(int64_t k, int32_t groups) {
  std::vector<int32_t> out;
  std::mt19937 generator(11);
  for (int64_t i = 0; i < k; ++i) out.push_back(i < groups ? groups - 1 - int32_t(i) : int32_t(generator()) % groups);
  for (int32_t& group : out) group = std::abs(group);
  return out;
}

std::vector<CodePanelsSpec> every_spec() {
  std::vector<CodePanelsSpec> out;
  for (const PanelCodes codes : {PanelCodes::i8, PanelCodes::u8, PanelCodes::e4m3, PanelCodes::table4})
    for (const CodeShift shift : {CodeShift::none, CodeShift::zeros, CodeShift::offsets})
      for (const ValueRounding rounding : {ValueRounding::none, ValueRounding::bf16, ValueRounding::f16})
        out.push_back({.codes = codes,
                       .group = codes == PanelCodes::table4 ? 16 : 6,
                       .shift = shift,
                       .rounding = rounding,
                       .factor = shift == CodeShift::zeros && rounding == ValueRounding::none ? 1 / 127.f : 1});
  return out;
}

std::string told(const CodePanelsSpec& spec) {
  return "codes " + std::to_string(int(spec.codes)) + ", shift " + std::to_string(int(spec.shift)) + ", rounding " +
         std::to_string(int(spec.rounding));
}

TEST(CodePanels, DecodeToTheValuesThatTheirCodesMean) {
  for (CodePanelsSpec spec : every_spec()) {
    SCOPED_TRACE(told(spec));
    for (const auto& [n, k] : {std::pair{70, 75}, {33, 96}, {3, 16}})
      for (const char* const groups : {"whole rows", "groups", "act order"})
        for (const CodeNumbers numbers : {CodeNumbers::f32, CodeNumbers::bf16, CodeNumbers::f16}) {
          CodePanelsSpec own = spec;
          if (groups == std::string_view("whole rows")) own.group = 0;
          if (groups == std::string_view("act order")) own.group_of_k = some_order(k, 7);
          const Coded coded(n, k, own, numbers);
          const auto panels = coded.panels();
          EXPECT_EQ(panels->layout().numbers, numbers);
          const std::vector<float> wanted = coded.values();
          std::vector<float> one_by_one(wanted.size());
          panels->decode(0, 1, n, one_by_one.data());
          ASSERT_TRUE(same_bits(one_by_one, wanted));
          const EncodedWeight weight{panels, n, 0, 1};
          on_every_isa([&] {
            std::vector<float> found(wanted.size());
            decode(serial_executor(), weight, {found.data(), k});
            ASSERT_TRUE(same_bits(found, wanted));
          });
        }
  }
}

TEST(CodePanels, ReadRowsThatAreApart) {
  const Coded coded(70, 75, {.codes = PanelCodes::u8, .group = 6, .shift = CodeShift::zeros}, CodeNumbers::f32);
  const std::vector<float> all = coded.values();
  std::vector<float> found(3 * 75), wanted;
  coded.panels()->decode(5, 30, 3, found.data());
  for (const int64_t row : {5, 35, 65})
    wanted.insert(wanted.end(), all.begin() + row * 75, all.begin() + (row + 1) * 75);
  EXPECT_TRUE(same_bits(found, wanted));
}

// Rows 32 to 68 of 70, in bf16: whole panels, the last of them in part.
TEST(CodePanels, DecodeSomeOfTheirPanels) {
  const Coded coded(70, 75, {.codes = PanelCodes::u8, .group = 6, .shift = CodeShift::zeros}, CodeNumbers::f32);
  const std::vector<float> all = coded.values();
  const EncodedWeight weight{coded.panels(), 37, 32, 1};
  on_every_isa([&] {
    std::vector<bf16> found(37 * 75);
    decode(serial_executor(), weight, {found.data(), 75});
    EXPECT_TRUE(same_bits(found, narrowed({all.begin() + 32 * 75, all.begin() + 69 * 75})));
  });
}

TEST(CodePanels, MultiplyWithTheBitsOfTheirDecodedValues) {
  constexpr int64_t n = 70;
  for (const CodePanelsSpec& spec : every_spec()) {
    SCOPED_TRACE(told(spec));
    for (const int64_t k : {75, 96, 111}) {
      CodePanelsSpec own = spec;
      if (k == 111) own.group_of_k = some_order(k, 5);
      const Coded coded(n, k, own, spec.shift == CodeShift::zeros ? CodeNumbers::bf16 : CodeNumbers::f16);
      const EncodedWeight weight{coded.panels(), n, 0, 1};
      const std::vector<float> values = coded.values();
      for (const int64_t m : {1, 5, 40}) expect_products_of_plain(weight, values, m, n, k);
    }
  }
}

// Up to four rows in pairs are multiplied without a panel of values, if no value is denormal.
TEST(CodePanels, MultiplyFewRowsWithTheSameBitsAsMany) {
  constexpr int64_t n = 70;
  for (const CodePanelsSpec& spec : every_spec()) {
    SCOPED_TRACE(told(spec));
    for (const int64_t k : {80, 96, 160, 176}) {
      CodePanelsSpec own = spec;
      if (k == 176) own.group_of_k = some_order(k, 9);
      Coded coded(n, k, own, CodeNumbers::f16);
      for (size_t i = 0; i < coded.spec.table.size(); ++i) coded.spec.table[i] = float(int(i * 7 % 16) - 5);
      std::mt19937 generator(9);
      for (float& scale : coded.scales) scale = rounded_to_half(float(1 + generator() % 999) * 0x1.01p-14f);
      for (float& shift : coded.shifts)
        shift = coded.spec.shift == CodeShift::zeros ? float(generator() % 16) : rounded_to_half(-0.3f * shift);
      const auto panels = coded.panels();
      EXPECT_EQ(panels->layout().is_normal, spec.codes != PanelCodes::e4m3 || spec.shift == CodeShift::none);
      const EncodedWeight weight{panels, n, 0, 1};
      const std::vector<float> values = coded.values();
      for (const int64_t m : {1, 2, 3, 4}) expect_products_of_plain(weight, values, m, n, k);
    }
  }
}

// Their products would be zero by the instruction, and are not with the decoded values.
TEST(CodePanels, KnowDenormalValues) {
  Coded coded(32, 64, {.codes = PanelCodes::i8, .group = 16}, CodeNumbers::f32);
  for (float& scale : coded.scales) scale = 1;
  EXPECT_TRUE(coded.panels()->layout().is_normal);
  coded.scales[5] = 0;
  EXPECT_TRUE(coded.panels()->layout().is_normal);
  coded.scales[5] = 0x1p-127f;
  EXPECT_FALSE(coded.panels()->layout().is_normal);
}

// As K-quants of ggml have them: a half times a whole number needs fp32, and is a multiple of 2^-24 all the same.
TEST(CodePanels, KnowThatSumsOfMultiplesAreNotDenormal) {
  const CodePanelsSpec spec{.codes = PanelCodes::u8, .group = 16, .shift = CodeShift::offsets};
  Coded coded(32, 64, spec, CodeNumbers::f32);
  for (float& scale : coded.scales) scale = half_value(0x0401) * 63;
  for (float& shift : coded.shifts) shift = -half_value(0x0003) * 61;
  EXPECT_EQ(coded.panels()->layout().numbers, CodeNumbers::f32);
  EXPECT_TRUE(coded.panels()->layout().is_normal);
  for (const int64_t m : {1, 4}) expect_products_of_plain({coded.panels(), 32, 0, 1}, coded.values(), m, 32, 64);
  coded.shifts[3] = 0x1p-25f;
  EXPECT_FALSE(coded.panels()->layout().is_normal);
}

TEST(CodePanels, AreUnpackedInActOrder) {
  CodePanelsSpec spec{.codes = PanelCodes::table4};
  spec.group_of_k = some_order(75, 4);
  const Coded coded(37, 75, spec, CodeNumbers::f32);
  std::vector<uint8_t> codes(coded.codes.size());
  std::vector<float> scales(coded.scales.size());
  unpack_panels(*coded.panels(), codes.data(), scales.data());
  EXPECT_EQ(codes, coded.codes);
  EXPECT_TRUE(same_bits(scales, coded.scales));
}

// Half of what fp32 scales take.
TEST(CodePanels, KeepNumbersInTwoBytesWhereThatLosesNothing) {
  const CodePanelsSpec spec{.codes = PanelCodes::e4m3, .group = 16};
  EXPECT_EQ(Coded(32, 64, spec, CodeNumbers::bf16).panels()->bytes(), 32 * 64 + 32 * 4 * 2);
  EXPECT_EQ(Coded(32, 64, spec, CodeNumbers::f16).panels()->bytes(), 32 * 64 + 32 * 4 * 2);
  EXPECT_EQ(Coded(32, 64, spec, CodeNumbers::f32).panels()->bytes(), 32 * 64 + 32 * 4 * 4);
}

}  // namespace
}  // namespace easydel::kernels
