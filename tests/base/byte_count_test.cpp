#include "easydel/base/byte_count.h"

#include <gtest/gtest.h>

namespace easydel {
namespace {

TEST(ByteCount, IsReadWithItsUnit) {
  EXPECT_EQ(byte_count("500MB"), 500'000'000);
  EXPECT_EQ(byte_count("2 GiB"), int64_t{2} << 30);
  EXPECT_EQ(byte_count("1.5kb"), 1500);
  EXPECT_EQ(byte_count("4096"), 4096);
  EXPECT_EQ(byte_count("64B"), 64);
  EXPECT_EQ(byte_count("1e3"), 1000);
}

TEST(ByteCount, RefusesOtherTexts) {
  for (const char* text : {"", "MB", "0", "-1GB", "5 apples", "1MiX", "nan", "inf", "1e300GB", "0.2"})
    EXPECT_EQ(byte_count(text), std::nullopt) << text;
}

}  // namespace
}  // namespace easydel
