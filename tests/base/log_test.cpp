#include "easydel/base/log.h"

#include <gtest/gtest.h>

namespace easydel::log {
namespace {

TEST(Log, GoesWhereItIsSentAndNoFurtherThanItsLevel) {
  std::string seen;
  set_sink([&](Level level, std::string_view text) { seen += str(static_cast<int>(level), text, ";"); });
  set_level(Level::warning);
  info("not ", 1);
  warning("yes ", 2);
  error("and ", 3);
  set_level(Level::info);
  set_sink(nullptr);
  EXPECT_EQ(seen, "2yes 2;3and 3;");
}

}  // namespace
}  // namespace easydel::log
