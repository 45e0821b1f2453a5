// The differences that the program knows are those that docs/differences.md lists, and none of them is idle.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "easydel/probe/vectors.h"
#include "support/data.h"

namespace easydel::probe {
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

// What a pattern means that is too wide, a later change may break unseen: of the recorded cases that it means, each is
// another on purpose (or was refused there too), and there is one at least.
TEST(VectorDifferences, MeanNoCaseThatIsEqual) {
  const auto folder = test::shared_data("easydel_vectors");
  if (!folder) GTEST_SKIP() << "no shared data";
  std::vector<int> met(vector_differences().size());
  std::vector<std::regex> ids;
  for (const VectorDifference& difference : vector_differences()) ids.emplace_back(std::string(difference.id));
  const std::set<std::string_view> kinds = [] {
    std::set<std::string_view> out;
    for (const VectorDifference& difference : vector_differences()) out.insert(difference.kind);
    return out;
  }();
  for (const std::string_view name : kinds) {
    if (name == "elarge_cli") continue;  // that one runs the program
    const VectorKind* const kind = find_vector_kind(name);
    ASSERT_NE(kind, nullptr) << name;
    for (const char* tag : {"v0201", "v0300"}) {
      const auto path = *folder / str(name, ".", tag, ".json");
      if (!std::filesystem::exists(path)) continue;
      const VectorFile file = read_vectors(path);
      for (const VectorCase& vector : cases_of(file, kind)) {
        Answered answered;
        for (size_t i = 0; i < met.size(); ++i) {
          const VectorDifference& difference = vector_differences()[i];
          if (difference.kind != name ||
              (!difference.version.empty() && (difference.version == "0.3.0") != (std::string_view(tag) == "v0300")) ||
              !std::regex_match(vector.id, ids[i]))
            continue;
          if (answered.id.empty()) answered = answer(vector, file, kind);
          const bool differs = answered.outcome == Outcome::differs;
          met[i] += differs && answered.line.find("differs")->scalar == difference.reason;
          const bool refused_there = vector.body.find("expect") && vector.body.find("expect")->find("error");
          if (difference.says.empty()) {
            EXPECT_TRUE(differs || refused_there) << name << " " << tag << " " << vector.id << ": " << difference.id;
          }
        }
      }
    }
  }
  for (size_t i = 0; i < met.size(); ++i)
    if (vector_differences()[i].kind != "elarge_cli") {
      EXPECT_GT(met[i], 0) << vector_differences()[i].kind << " " << vector_differences()[i].id;
    }
}

}  // namespace
}  // namespace easydel::probe
