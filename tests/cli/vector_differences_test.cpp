// The differences that the program knows are those that docs/differences.md lists, and none of them is idle.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "easydel/cli/vectors.h"
#include "support/data.h"

namespace easydel::cli {
namespace {

std::string row_of(const VectorDifference& difference) {
  const std::string pattern = std::regex_replace(std::string(difference.id), std::regex(R"(\|)"), R"(\|)");
  return str("| ", difference.kind, " | ", difference.version.empty() ? "both" : difference.version, " | `", pattern,
             "` | ", difference.reason, " |\n");
}

TEST(VectorDifferences, AreThoseOfTheDocument) {
  const std::string page = test::read_file(test::source_root() / "docs/differences.md");
  std::string rows;
  for (const VectorDifference& difference : vector_differences()) rows += row_of(difference);
  const size_t at = page.find("|---|---|---|---|\n", page.find("## Recorded cases"));
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(page.substr(at + 18, rows.size()), rows);
  EXPECT_EQ(std::ranges::count(page.substr(at + 18), '\n'), std::ranges::count(rows, '\n'));
}

// A pattern that no recorded case needs hides what a later change breaks.
TEST(VectorDifferences, OfKindsWithoutTorchAreEachMetByACase) {
  const auto folder = test::shared_data("easydel_vectors");
  if (!folder) GTEST_SKIP() << "no shared data";
  for (const VectorDifference& difference : vector_differences()) {
    const auto kind = std::ranges::find(vector_kinds(), difference.kind, &VectorKind::name);
    if (kind == vector_kinds().end() || difference.kind == "elarge_cli") continue;  // that one runs the program
    bool met = false;
    for (const char* tag : {"v0201", "v0300"}) {
      if (met || (!difference.version.empty() && (difference.version == "0.3.0") != (std::string(tag) == "v0300")))
        continue;
      const VectorFile file = read_vectors(*folder / str(difference.kind, ".", tag, ".json"));
      const std::regex id{std::string(difference.id)};
      for (const VectorCase& vector : cases_of(file, &*kind))
        if (!met && std::regex_match(vector.id, id)) met = answer(vector, file, &*kind).outcome == Outcome::differs;
    }
    EXPECT_TRUE(met) << difference.kind << " " << difference.id;
  }
}

}  // namespace
}  // namespace easydel::cli
