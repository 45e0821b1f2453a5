// Every recorded case of eLargeModel and of the registry passes, or differs on purpose by a line of
// docs/differences.md.
#include <gtest/gtest.h>

#include <map>

#include "easydel/cli/vectors.h"
#include "support/data.h"

namespace easydel::cli {
namespace {

TEST(RecordedElarge, PassesOrDiffersOnPurpose) {
  const auto folder = test::shared_data("easydel_vectors");
  if (!folder) GTEST_SKIP() << "no shared data";
  for (const char* name :
       {"elarge_scalars", "elarge_normalize", "elarge_derived", "elarge_trainer", "elarge_runner", "registry_lookup"})
    for (const char* tag : {"v0201", "v0300"}) {
      const VectorFile file = read_vectors(*folder / (std::string(name) + "." + tag + ".json"));
      const VectorKind* const kind = find_vector_kind(name);
      ASSERT_NE(kind, nullptr) << name;
      std::map<Outcome, int> counts;
      for (const VectorCase& vector : cases_of(file, kind)) {
        const Answered answered = answer(vector, file, kind);
        ++counts[answered.outcome];
        EXPECT_NE(answered.outcome, Outcome::failed)
            << name << " " << tag << " " << answered.id << ": " << answered.why;
      }
      EXPECT_GT(counts[Outcome::passed], counts[Outcome::differs]) << name << " " << tag;
    }
}

TEST(RecordedElarge, DifferencesStandInTheDocument) {
  const std::string page = test::read_file(test::source_root() / "docs/differences.md");
  for (const VectorDifference& difference : vector_differences()) {
    std::string pattern(difference.id);
    for (size_t at = 0; (at = pattern.find('|', at)) != std::string::npos; at += 2) pattern.insert(at, "\\");
    const std::string row =
        "| `" + std::string(difference.kind) + "` | `" + pattern + "` | " + std::string(difference.reason) + " |";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace easydel::cli
