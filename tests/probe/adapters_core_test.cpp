// Adapters that PEFT recorded: their logits, alone and merged, and training runs that start from one.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "easydel/probe/logits.h"
#include "easydel/probe/vectors.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::probe {
namespace {

namespace fs = std::filesystem;

void expect_as_recorded(const fs::path& path) {
  const VectorFile file = read_vectors(path);
  const VectorKind* const kind = find_vector_kind(kind_of(file));
  ASSERT_TRUE(kind) << path << kind_of(file);
  for (const VectorCase& vector : cases_of(file, kind)) {
    const Answered got = answer(vector, file, kind);
    EXPECT_EQ(got.why, "") << path;
  }
}

std::vector<fs::path> recorded(const fs::path& folder, const std::string& name) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / name)) out.push_back(entry.path() / name);
  return out;
}

TEST(RecordedAdapters, GiveTheirLogitsAloneAndMerged) {
  const auto all = recorded(test::test_data("trl/peft"), "expected.json.gz");
  EXPECT_EQ(all.size(), 10u);
  for (const fs::path& path : all) expect_as_recorded(path);
}

TEST(RecordedAdapters, OfTheSharedDataGiveTheirs) {
  const auto root = test::shared_data("trl_goldens/peft");
  if (!root) GTEST_SKIP() << "no shared data";
  for (const fs::path& path : recorded(*root, "expected.json")) expect_as_recorded(path);
}

TEST(ProbeLogits, TakesAnAdapterAndMergesIt) {
  const test::TemporaryFolder folder;
  const fs::path adapter = test::test_data("trl/peft/lora_qv_r4_a8");
  const Tensor ids = at::full({1, 10}, 7, at::kLong);
  std::vector<weights::OutTensor> inputs = {tensor::to_file("input_ids", ids, at::kLong)};
  weights::write_safetensors(folder / "in.safetensors", inputs);
  const auto run = [&](bool adapted, bool is_merged) {
    LogitsOptions options;
    if (adapted) options.adapters = {adapter};
    options.merged = is_merged;
    logits(test::test_data("models/stories260K-hf"), folder / "in.safetensors", folder / "out.safetensors", options);
    return tensor::from_view(weights::SafetensorsFile::open(folder / "out.safetensors")->at("logits")).clone();
  };
  const Tensor base = run(false, false), alone = run(true, false), merged = run(true, true);
  EXPECT_GT((base - alone).abs().max().item<float>(), 0.1f);
  EXPECT_LT((merged - alone).abs().max().item<float>(), 1e-4f);
  EXPECT_FALSE(merged.equal(alone));
}

}  // namespace
}  // namespace easydel::probe
