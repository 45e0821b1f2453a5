// Blocks of ggml's dtypes. The expected values are gguf-py's (tests/data/SOURCES.md).
#include "easydel/weights/ggml.h"

#include <gtest/gtest.h>

#include <cstring>

#include "easydel/weights/gguf.h"
#include "support/data.h"

namespace easydel::weights {
namespace {

std::vector<float> values_of(const GgufFile& file, const GgufFile::Entry& entry) {
  std::vector<float> out(static_cast<size_t>(file.view(entry).elements()));
  decode(entry.type, file.view(entry).bytes.data(), out.data(), static_cast<int64_t>(out.size()));
  return out;
}

TEST(Ggml, DecodesEveryTypeToTheSameBits) {
  const auto file = GgufFile::open(test::test_data("weights/ggml_blocks.gguf"));
  int compared = 0;
  for (const auto& [name, entry] : file->tensors()) {
    const GgufFile::Entry* const expected = file->find(name + ".values");
    if (!expected) continue;
    const std::vector<float> found = values_of(*file, entry), right = values_of(*file, *expected);
    ASSERT_EQ(found.size(), right.size()) << name;
    EXPECT_EQ(std::memcmp(found.data(), right.data(), found.size() * sizeof(float)), 0) << name;
    EXPECT_EQ(name, form_of(entry.type).name);
    ++compared;
  }
  EXPECT_EQ(compared, 12);
}

TEST(Ggml, EncodesToTheSameBytes) {
  const auto file = GgufFile::open(test::test_data("weights/ggml_blocks.gguf"));
  const std::vector<float> values = values_of(*file, *file->find("written"));
  for (const GgmlType type : {GgmlType::f16, GgmlType::bf16, GgmlType::q8_0}) {
    const GgmlForm& form = form_of(type);
    const TensorView right = file->view(*file->find("written." + std::string(form.name)));
    std::vector<std::byte> found(right.bytes.size());
    ASSERT_EQ(found.size(), values.size() / static_cast<size_t>(form.elements) * form.bytes);
    encode(type, values.data(), found.data(), static_cast<int64_t>(values.size()));
    EXPECT_EQ(std::memcmp(found.data(), right.bytes.data(), found.size()), 0) << form.name;
  }
}

TEST(Ggml, RefusesToDecodeHalfABlock) {
  const std::byte block[34] = {};
  float out[32];
  EXPECT_THROW(decode(GgmlType::q8_0, block, out, 31), Bug);
  EXPECT_THROW(encode(GgmlType::q4_k, out, nullptr, 256), Bug);
}

}  // namespace
}  // namespace easydel::weights
