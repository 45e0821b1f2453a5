#include "easydel/generation/stopping.h"

#include <gtest/gtest.h>

namespace easydel::generation {
namespace {

std::string feed(StopStrings& stops, std::string_view text, size_t piece) {
  std::string out;
  for (size_t i = 0; i < text.size(); i += piece) out += stops.push(text.substr(i, piece));
  return out + stops.finish();
}

TEST(StopStrings, CutTheTextAtTheFirstStopHoweverItArrives) {
  for (size_t piece = 1; piece < 12; ++piece) {
    StopStrings stops({"END", "STOP NOW"});
    EXPECT_EQ(feed(stops, "one STOP NO, two EN, three STOP NOW four END", piece), "one STOP NO, two EN, three ")
        << piece;
    EXPECT_TRUE(stops.stopped());
  }
}

TEST(StopStrings, GiveBackWhatOnlyLookedLikeAStop) {
  for (size_t piece = 1; piece < 5; ++piece) {
    StopStrings stops({"abcd"});
    EXPECT_EQ(feed(stops, "xabcabc", piece), "xabcabc") << piece;
    EXPECT_FALSE(stops.stopped());
  }
}

TEST(StopStrings, NeverShowTheBeginningOfAStop) {
  StopStrings stops({"</end>"});
  EXPECT_EQ(stops.push("text</e"), "text");
  EXPECT_EQ(stops.push("nd"), "");
  EXPECT_EQ(stops.push(">more"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.push("again"), "");
}

TEST(StopStrings, EmptyStopsStopNothing) {
  StopStrings stops({""});
  EXPECT_EQ(feed(stops, "abc", 1), "abc");
}

}  // namespace
}  // namespace easydel::generation
