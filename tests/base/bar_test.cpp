#include "easydel/base/bar.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

namespace easydel {
namespace {

TEST(Bar, IsFullByItsShare) {
  EXPECT_EQ(bar_of(0.0, 12, false), "[..........]");
  EXPECT_EQ(bar_of(0.5, 12, false), "[#####.....]");
  EXPECT_EQ(bar_of(7.0, 12, false), "[##########]");
  EXPECT_EQ(bar_of(1.0, 12, true), "\033[36m[##########]\033[0m");
  EXPECT_EQ(bar_of(0.5, 6, false), "");
}

TEST(TerminalBar, DrawsOneLineOnATerminalAndWipesIt) {
  int outer = -1, inner = -1;
  winsize size = {};
  size.ws_col = 30;
  ASSERT_EQ(openpty(&outer, &inner, nullptr, nullptr, &size), 0);
  std::FILE* const stream = fdopen(inner, "w");
  setenv("NO_COLOR", "1", 1);
  {
    TerminalBar bar("loading", stream);
    EXPECT_TRUE(bar.on_terminal());
    bar.draw(0.5);
  }
  unsetenv("NO_COLOR");
  const std::string expected = "\r\033[Kloading [#######.......] 50 %\r\033[K";
  std::string text;
  while (text.size() < expected.size()) {
    char some[256];
    const ssize_t count = read(outer, some, sizeof some);
    if (count <= 0) break;
    text.append(some, static_cast<size_t>(count));
  }
  EXPECT_EQ(text, expected);
  std::fclose(stream);
  close(outer);
}

TEST(TerminalBar, DrawsNothingInAFile) {
  std::FILE* const file = std::tmpfile();
  {
    TerminalBar bar("loading", file);
    EXPECT_FALSE(bar.on_terminal());
    bar.draw(0.5);
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace easydel
