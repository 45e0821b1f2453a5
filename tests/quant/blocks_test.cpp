// bitsandbytes' codes of random and hostile blocks (scripts/bnb_blocks.py): ours have the same bytes.
#include <gtest/gtest.h>

#include <cstring>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/quant/dynamic_map.h"
#include "easydel/quant/four_bits.h"
#include "easydel/tensor/executor.h"
#include "easydel/text/tokenizers/charsmap.h"
#include "support/data.h"

namespace easydel::quant {
namespace {

std::string bytes_of(const Value& base64) { return text::decode_base64(base64.scalar); }

std::vector<float> floats_of(const Value& base64) {
  const std::string bytes = bytes_of(base64);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

const Value& recorded() {
  static const Value document = parse_json(files::read_compressed(test::test_data("codes/blocks.json.gz")), "blocks");
  return document;
}

TEST(Blocks, HaveBitsandbytesBytes) {
  int cases = 0;
  for (const Value& one : recorded().find("cases")->items) {
    const std::string& kind = one.find("kind")->scalar;
    const std::vector<float> values = floats_of(recorded().find("inputs")->items[size_t(*one.find("input")->as_int())]);
    const auto count = int64_t(values.size()), block = *one.find("block")->as_int();
    std::vector<uint8_t> codes(values.size());
    std::vector<float> scales(size_t((count + block - 1) / block));
    if (kind == "dynamic" || kind == "unsigned") {
      quantize_dynamic(tensor::executor(), kind == "dynamic", values.data(), count, block, codes.data(), scales.data());
    } else {
      const FourBits four = kind == "nf4" ? FourBits::nf4 : FourBits::fp4;
      quantize_four_bits(tensor::executor(), four, values.data(), count, block, codes.data(), scales.data());
      codes = pack_four_bits(four, codes.data(), count);
    }
    EXPECT_EQ(raw(codes), bytes_of(*one.find("codes"))) << kind << " " << one.find("name")->scalar << " " << count;
    EXPECT_EQ(raw(scales), bytes_of(*one.find("scales"))) << kind << " " << one.find("name")->scalar << " " << count;
    ++cases;
  }
  EXPECT_GT(cases, 600);
}

TEST(Blocks, TheDynamicMapsAreBitsandbytes) {
  for (const bool has_sign : {true, false}) {
    const auto& map = dynamic_map(has_sign);
    const Value& expected = *recorded().find("maps")->find(has_sign ? "dynamic" : "unsigned");
    EXPECT_EQ(raw(std::vector<float>(map.begin(), map.end())), bytes_of(expected));
  }
}

TEST(Blocks, ComeBackAsNumbersOfTheMapTimesTheScale) {
  const std::vector<float> values = {0.5f, -2, 0, 1, 0.25f};
  std::vector<uint8_t> codes(5);
  std::vector<float> scales(2), back(5);
  quantize_dynamic(tensor::executor(), true, values.data(), 5, 4, codes.data(), scales.data());
  dequantize_dynamic(tensor::executor(), true, codes.data(), scales.data(), 5, 4, back.data());
  EXPECT_EQ(scales, (std::vector<float>{2, 0.25f}));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(back[i], dynamic_map(true)[codes[i]] * scales[i / 4]) << i;
  EXPECT_EQ(back[4], 0.25f);
  EXPECT_NEAR(back[0], 0.5f, 0.02f);
}

}  // namespace
}  // namespace easydel::quant
