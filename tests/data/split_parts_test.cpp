#include "easydel/data/split_parts.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::data {
namespace {

std::string range_of(const std::string& split, int64_t rows) {
  std::string out;
  for (const SplitPart& part : split_parts(split, "split")) {
    const SplitPart::Range range = part.range(rows);
    out += str(out.empty() ? "" : " ", part.split, ":", range.first, "-", range.last);
  }
  return out;
}

// Computed by ReadInstruction.from_spec(split).to_absolute({"train": rows}) of datasets 5.2.
TEST(SplitParts, RoundAsDatasetsDoes) {
  EXPECT_EQ(range_of("train[:10%]", 105), "train:0-10") << "10.5 goes to the even row";
  EXPECT_EQ(range_of("train[:10%]", 115), "train:0-12") << "11.5 goes to the even row";
  EXPECT_EQ(range_of("train[10%:]", 105), "train:10-105");
  EXPECT_EQ(range_of("train[-10%:]", 105), "train:95-105");
  EXPECT_EQ(range_of("train[33%:66%]", 10), "train:3-7");
  EXPECT_EQ(range_of("train[33%:66%](pct1_dropremainder)", 199), "train:33-66");
  EXPECT_EQ(range_of("train[-5:]", 12), "train:7-12");
  EXPECT_EQ(range_of("train[:-5]", 3), "train:0-0");
  EXPECT_EQ(range_of("train[1_000:2_000]", 12), "train:1000-2000") << "a slice of rows needs no count";
  EXPECT_EQ(range_of("train[100:200] + validation", 9), "train:100-200 validation:0-9223372036854775807");
}

TEST(SplitParts, OtherFormsAreRefused) {
  const auto told = [](const std::string& split) { return test::refusal([&] { split_parts(split, "split"); }); };
  EXPECT_EQ(told("train[:10"),
            "split: 'train[:10' is neither a split nor a slice of one\n    for example train, train[:10%], "
            "train[100:200]+validation");
  for (const char* wrong : {"", "train+", "train[10]", "train[a:b]", "tr ain[:1]x", "train[1:2](down)", "[:1]"})
    EXPECT_NE(told(wrong).find("is neither a split nor a slice of one"), std::string::npos) << wrong;
  EXPECT_EQ(told("train[:101%]"),
            "split: 'train[:101%]': a slice goes from -100% to 100%\n    for example train[:10%]");
  EXPECT_EQ(told("train[5:10%]"),
            "split: 'train[5:10%]' mixes rows and percents\n    give both boundaries in one unit");
}

}  // namespace
}  // namespace easydel::data
