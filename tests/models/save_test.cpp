// Saving a loaded model reproduces it: names, shapes, dtypes and bytes of every golden's tensors, and its config.json.
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/weights/folder.h"
#include "support/data.h"

namespace easydel::models {
namespace {

std::vector<std::string> goldens() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("hf_goldens")))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string text_of(const weights::TensorView& view) {
  return str(view.type_name(), " ", view.shape.size(), " dimensions");
}

class Saved : public testing::TestWithParam<std::string> {};

TEST_P(Saved, IsWhatWasLoaded) {
  const auto folder = test::test_data("hf_goldens/" + GetParam());
  const test::TemporaryFolder copy;
  save_model(*load_model(folder, {}), copy.path());
  const auto before = weights::Folder::open(folder), after = weights::Folder::open(copy.path());
  const Value config = parse_file(folder / "config.json");
  if (config.find("quantization_config")) GTEST_SKIP() << "packed weights are saved as plain ones";
  EXPECT_EQ(after.names(), before.names());
  for (const std::string& name : after.names()) {
    if (!before.has(name)) continue;
    const auto a = after.at(name), b = before.at(name);
    EXPECT_EQ(a.shape, b.shape) << name;
    EXPECT_EQ(text_of(a), text_of(b)) << name;
    EXPECT_TRUE(std::ranges::equal(a.bytes, b.bytes)) << name;
  }
  EXPECT_EQ(parse_file(copy / "config.json"), config);
}

INSTANTIATE_TEST_SUITE_P(All, Saved, testing::ValuesIn(goldens()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace easydel::models
