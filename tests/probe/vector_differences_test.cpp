// docs/differences.md lists the rules of the program's differences, and every pattern covers a recorded case.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "easydel/probe/vectors.h"
#include "support/data.h"

namespace easydel::probe {
namespace {

std::string row_of(const VectorDifference& difference) {
  return str("| ", difference.kind, " | ", difference.version.empty() ? "both" : difference.version, " | ",
             difference.reason, " |\n");
}

// One row for each rule, however many patterns of ids it has.
TEST(VectorDifferences, AreThoseOfTheDocument) {
  const std::string page = test::read_file(test::source_root() / "docs/differences.md");
  std::string rows;
  for (const VectorDifference& difference : vector_differences())
    if (const std::string row = row_of(difference); rows.find(row) == std::string::npos) rows += row;
  const std::string header = "|---|---|---|\n";
  const size_t at = page.find(header, page.find("## Recorded cases"));
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(page.substr(at + header.size()), rows);
}

// A later change could break cases that a too wide pattern covers, unseen. So every covered case must really differ (or
// have been refused there, too), and each pattern must cover at least one.
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
