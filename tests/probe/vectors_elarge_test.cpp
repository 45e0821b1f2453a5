// Every recorded case of eLargeModel and of the registry passes, or differs on purpose.
#include <gtest/gtest.h>

#include <map>

#include "easydel/probe/vectors.h"
#include "support/data.h"

namespace easydel::probe {
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

TEST(RecordedElarge, CommandLinesDoWhatWasRecorded) {
  const auto folder = test::shared_data("easydel_vectors");
  if (!folder) GTEST_SKIP() << "no shared data";
  for (const char* tag : {"v0201", "v0300"}) {
    const auto ran =
        test::run_program({"probe", "vectors", (*folder / str("elarge_cli.", tag, ".json")).string(), "--check"});
    EXPECT_EQ(ran.status, 0) << ran.out;
  }
}

}  // namespace
}  // namespace easydel::probe
