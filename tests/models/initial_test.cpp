// Random starts have transformers' distributions: mean, deviation and greatest value of every kind of parameter.
#include <gtest/gtest.h>

#include <ATen/ops/cat.h>

#include <cmath>
#include <map>
#include <regex>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::models {
namespace {

std::vector<std::string> families_with_figures() {
  std::vector<std::string> names;
  for (const auto& [name, figures] : parse_file(test::test_data("initial_values.json")).entries) names.push_back(name);
  return names;
}

// All values of a kind of parameter, over all layers.
std::map<std::string, Tensor> values_by_kind(const std::filesystem::path& folder) {
  const auto file = weights::SafetensorsFile::open(folder / "model.safetensors");
  const std::regex number(R"((^|\.)\d+\.)");
  std::map<std::string, Tensor> out;
  for (const std::string& name : file->names()) {
    Tensor& all = out[std::regex_replace(name, number, "$1N.")];
    const Tensor values = tensor::from_view(file->at(name)).to(at::kDouble).flatten();
    all = all.defined() ? at::cat({all, values}) : values;
  }
  return out;
}

class InitialValues : public testing::TestWithParam<std::string> {};

TEST_P(InitialValues, AreDrawnAsTransformersDrawsThem) {
  const Value figures = parse_file(test::test_data("initial_values.json"));
  const Value& family = *figures.find(GetParam());
  const test::TemporaryFolder work;
  test::write_file(work / "config.json", to_json(*family.find("config")));
  save_model(*load_model(work.path(), {}), work / "saved");
  const auto found = values_by_kind(work / "saved");
  const auto& wanted = family.find("kinds")->entries;
  EXPECT_EQ(found.size(), wanted.size());
  for (const auto& [kind, numbers] : wanted) {
    ASSERT_TRUE(found.contains(kind)) << kind;
    const Tensor& values = found.at(kind);
    const double mean = *numbers.items[0].as_double(), deviation = *numbers.items[1].as_double(),
                 most = *numbers.items[2].as_double();
    // Both are draws: five deviations of their difference.
    const double slack = 5.0 * deviation * std::sqrt(2.0 / double(values.numel())) + 1e-7;
    EXPECT_NEAR(values.mean().item<double>(), mean, slack) << kind;
    EXPECT_NEAR(values.std(0, false).item<double>(), deviation, slack) << kind;
    // The greatest of a few values does not show where a distribution is truncated.
    if (values.numel() >= 1000) {
      EXPECT_LE(values.abs().max().item<double>(), 1.35 * most + 1e-7) << kind;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, InitialValues, testing::ValuesIn(families_with_figures()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace easydel::models
