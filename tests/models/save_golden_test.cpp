// Every golden model, loaded and saved again: the same names, number types and bytes.
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/models/model.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::models {
namespace {

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("hf_goldens")))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class SavedGolden : public testing::TestWithParam<std::string> {};

TEST_P(SavedGolden, HasTheTensorsItWasLoadedFrom) {
  const auto folder = test::test_data("hf_goldens/" + GetParam());
  const test::TemporaryFolder work;
  save_model(*load_model(folder, {}), work / "saved");
  const auto given = weights::SafetensorsFile::open(folder / "model.safetensors");
  const auto saved = weights::SafetensorsFile::open(work / "saved/model.safetensors");
  EXPECT_EQ(saved->names(), given->names());
  for (const std::string& name : given->names()) {
    ASSERT_TRUE(saved->has(name)) << name;
    const Tensor before = tensor::from_view(given->at(name)), after = tensor::from_view(saved->at(name));
    EXPECT_TRUE(before.scalar_type() == after.scalar_type() && before.equal(after)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SavedGolden, testing::ValuesIn(folders()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace easydel::models
