#include "easydel/base/error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <sstream>

#include "support/data.h"

namespace easydel {
namespace {

std::string text_of(const Where& at, const std::string& problem, const std::string& remedy = "") {
  return UserError(at, problem, remedy).what();
}

TEST(UserError, IsWrittenFromItsFieldsAndLeavesOutEmptyOnes) {
  const FilePlace place{"run.yaml", 3, 14};
  EXPECT_EQ(text_of({place, "esurge.page_sise"}, "no such key", "did you mean 'page_size'?"),
            "run.yaml:3:14: esurge.page_sise: no such key\n    did you mean 'page_size'?");
  EXPECT_EQ(text_of({place, "esurge.page_sise"}, "no such key"), "run.yaml:3:14: esurge.page_sise: no such key");
  EXPECT_EQ(text_of(place, "is not YAML"), "run.yaml:3:14: is not YAML");
  EXPECT_EQ(text_of(FilePlace{"rows.jsonl", 3}, "is empty"), "rows.jsonl:3: is empty");
  EXPECT_EQ(text_of(FilePlace{"rows.jsonl"}, "is empty"), "rows.jsonl: is empty");
  EXPECT_EQ(text_of("--nproc", "is 0", "give 1"), "--nproc: is 0\n    give 1");
  EXPECT_EQ(text_of("", "out of memory"), "out of memory");
}

TEST(UserError, KeepsItsFieldsWhenItIsThrown) {
  try {
    refuse({FilePlace{"run.yaml", 3, 14}, "trainer.beta"}, "'abc' is not a number", "give 0.1");
  } catch (const std::exception& thrown) {
    const UserError error = dynamic_cast<const UserError&>(thrown);
    EXPECT_EQ(error.where, "trainer.beta");
    EXPECT_EQ(error.problem, "'abc' is not a number");
    EXPECT_EQ(error.remedy, "give 0.1");
    EXPECT_EQ(error.place.file, "run.yaml");
    EXPECT_EQ(error.place.line, 3);
    EXPECT_EQ(error.place.column, 14);
    EXPECT_EQ(error.headline(), "run.yaml:3:14: trainer.beta: 'abc' is not a number");
    EXPECT_EQ(error.headline() + "\n    " + error.remedy, error.what());
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(Where, NamesKeysBelowAFileOrAKey) {
  const Where file = FilePlace{"config.json"};
  EXPECT_EQ(file.below("rope_scaling").text(), "config.json: rope_scaling");
  EXPECT_EQ(file.below("rope_scaling").below("factor").text(), "config.json: rope_scaling.factor");
  EXPECT_EQ(Where("trainer").below("beta").name, "trainer.beta");
}

TEST(Text, HoldsItsPartsAsAStreamWouldPrintThem) {
  const std::string word = "word";
  EXPECT_EQ(str("a ", word, std::string_view(" b"), ' ', true, ' ', -7, ' ', size_t{8}), "a word b 1 -7 8");
  EXPECT_EQ(str(std::numeric_limits<int64_t>::min(), " ", std::numeric_limits<uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(str(int8_t{-3}, " ", uint8_t{200}), "-3 200");
  EXPECT_EQ(str(std::filesystem::path("a b")), "\"a b\"");
  EXPECT_EQ(str(), "");
  for (const double value : {0.1, 1e-5, 1.0, 123456789.0, 2.5e300, std::numeric_limits<double>::infinity()}) {
    std::ostringstream stream;
    stream << value << " " << static_cast<float>(value);
    EXPECT_EQ(str(value, " ", static_cast<float>(value)), stream.str());
  }
}

struct Printed {
  int* times;
};
std::ostream& operator<<(std::ostream& stream, const Printed& part) { return ++*part.times, stream << "part"; }

TEST(Check, BuildsItsTextOnlyOnFailure) {
  int times = 0;
  check(true, Printed{&times});
  EXPECT_EQ(times, 0);
  EXPECT_THROW(check(false, Printed{&times}), Bug);
  EXPECT_EQ(times, 1);
}

TEST(Check, NamesFileAndLine) {
  try {
    check(2 < 1, "q has ", 2, " dimensions; it needs 3");
  } catch (const Bug& bug) {
    const std::string text = bug.what();
    EXPECT_NE(text.find("error_test.cpp:"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(": q has 2 dimensions; it needs 3")) << text;
    return;
  }
  FAIL() << "nothing was thrown";
}

}  // namespace
}  // namespace easydel
