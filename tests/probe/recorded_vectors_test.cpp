// Recorded answers of EasyDeL, torch and transformers, kind by kind: ours are equal, or differ on purpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "easydel/probe/vectors.h"
#include "support/data.h"

namespace easydel::probe {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> recorded_files() {
  std::vector<std::string> out;
  const fs::path folder = test::test_data("vectors");
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) out.push_back(entry.path().lexically_relative(folder).string());
  std::ranges::sort(out);
  return out;
}

class Recorded : public testing::TestWithParam<std::string> {};

TEST_P(Recorded, CasesAreAnsweredAsTheyWere) {
  const VectorFile file = read_vectors(test::test_data("vectors/" + GetParam()));
  const VectorKind* const kind = find_vector_kind(kind_of(file));
  ASSERT_NE(kind, nullptr);
  std::map<Outcome, int> counts;
  for (const VectorCase& vector : cases_of(file, kind)) {
    const Answered answered = answer(vector, file, kind);
    ++counts[answered.outcome];
    EXPECT_NE(answered.outcome, Outcome::failed) << vector.id << ": " << answered.why;
    EXPECT_NE(answered.outcome, Outcome::unknown) << vector.id;
  }
  EXPECT_GT(counts[Outcome::passed], 0);
  if (GetParam().starts_with("quant")) {
    EXPECT_EQ(counts[Outcome::not_built], 0);
  }
  std::printf("%s: %d passed, %d differ on purpose, %d not built yet\n", GetParam().c_str(), counts[Outcome::passed],
              counts[Outcome::differs], counts[Outcome::not_built]);
}

INSTANTIATE_TEST_SUITE_P(All, Recorded, testing::ValuesIn(recorded_files()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.find(".json"));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace easydel::probe
