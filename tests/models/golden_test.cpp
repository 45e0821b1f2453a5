// What transformers computes, through `probe logits`: logits, loss, every gradient's norm, greedy tokens.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/nn/cache.h"
#include "easydel/probe/logits.h"
#include "easydel/tensor/mapped.h"
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

// A list of names, or a map by them.
std::vector<std::string> names_in(const Value& names) {
  std::vector<std::string> out;
  for (const Value& name : names.items) out.push_back(*name.as_string());
  for (const auto& [name, shape] : names.entries) out.push_back(name);
  return out;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, IsWhatTransformersComputes) {
  const auto folder = test::test_data("hf_goldens/" + GetParam());
  const Value info = parse_file(folder / "expected.json");
  const auto expected = weights::SafetensorsFile::open(folder / "expected.safetensors");
  const auto value = [](const weights::SafetensorsFile& file, const std::string& name) {
    return tensor::from_view(file.at(name));
  };

  // The expectations hold the inputs; only the number of tokens to make is missing.
  test::TemporaryFolder work;
  std::vector<weights::OutTensor> inputs;
  const auto put = [&](const std::string& name) {
    const Tensor tensor = value(*expected, name);
    inputs.push_back(tensor::to_file(name, tensor, tensor.scalar_type()));
  };
  for (const std::string& name : names_in(*info.find("inputs"))) put(name);
  for (const char* name : {"prompt_ids", "prompt_mask"})
    if (expected->has(name)) put(name);
  const Tensor tokens = expected->has("generated") ? value(*expected, "generated") : Tensor();
  if (tokens.defined())
    inputs.push_back(tensor::to_file("max_new_tokens", tokens.new_full({1}, tokens.size(1)), at::kLong));
  weights::write_safetensors(work / "inputs.safetensors", inputs);
  probe::LogitsOptions options;
  if (const char* const device = std::getenv("EASYDEL_TEST_DEVICE"))
    options.device = device_setting(device, "EASYDEL_TEST_DEVICE");
  probe::logits(folder, work / "inputs.safetensors", work / "out.safetensors", options);
  const auto found = weights::SafetensorsFile::open(work / "out.safetensors");

  const Tensor mask = value(*expected, "attention_mask").ne(0).unsqueeze(-1);
  for (const char* name : {"logits", "last_hidden_state", "pooler_output"}) {
    if (!expected->has(name)) continue;
    const Tensor want = value(*expected, name), difference = value(*found, name) - want;
    const bool of_tokens = want.dim() == 3;
    EXPECT_LE((of_tokens ? difference * mask : difference).abs().max().item<double>(),
              2e-5 * want.abs().max().item<double>())
        << name;
  }
  if (const Value* const loss = info.find("loss")) {
    EXPECT_NEAR(value(*found, "loss").item<double>(), *loss->as_double(), 2e-5 * *loss->as_double());
  }
  if (const Value* const norms = info.find("grad_norms")) {
    const double total = *info.find("grad_norm_total")->as_double();
    EXPECT_NEAR(value(*found, "grad_norm_total").item<double>(), total, 1e-4 * total);
    for (const auto& [name, norm] : norms->entries)
      EXPECT_NEAR(value(*found, "grad_norm." + name).item<double>(), *norm.as_double(),
                  2e-4 * *norm.as_double() + 1e-6 * total)
          << name;
  }
  if (tokens.defined()) {
    EXPECT_TRUE(value(*found, "generated").equal(tokens));
  }
}

TEST_P(Golden, GivesTheWantedTokensWhatTheyAreAmongAll) {
  const auto model = load_model(test::test_data("hf_goldens/" + GetParam()), {});
  const at::NoGradGuard no_gradient;
  constexpr int64_t first = 7, second = 5;
  const Tensor tokens = at::arange(first + second, at::kLong) * 5 % 23 + 3;
  const auto hidden = [&](std::vector<int64_t> requested, bool cached) {
    std::unique_ptr<nn::Cache> cache;
    if (cached) cache = model->make_cache(2, first + second);
    std::unique_ptr<nn::Memory> memory;
    if (cached) memory = cache->next({1, 0}, {first, second});
    nn::Pass pass = cached ? nn::Pass::next(*memory) : nn::Pass::over({0, first, first + second});
    pass.stream().requested = std::move(requested);
    return model->forward({tokens}, pass).hidden;
  };
  // Equal bits, except for an activation that only ATen has, which rounds the end of a tensor differently from its
  // middle, and for norms of views into a packed query, key and value, which take another path than those of whole
  // tensors.
  const Value config = parse_file(test::test_data("hf_goldens/" + GetParam()) / "config.json");
  const Value* const activation = config.find("hidden_act");
  const bool exact = !(activation && activation->scalar == "mish") && config.find("model_type")->scalar != "persimmon";
  const auto expect = [&](const Tensor& found, const Tensor& all) {
    if (exact) {
      EXPECT_TRUE(found.equal(all));
    }
    EXPECT_LE((found - all).abs().max().item<double>(), 1e-6 * all.abs().max().item<double>());
  };
  for (const bool cached : {false, true}) {
    if (cached && !model->causal()) continue;
    const Tensor all = hidden({}, cached);
    expect(hidden({1, 3}, cached), at::cat({all.slice(0, first - 1, first), all.slice(0, -3)}));
    expect(hidden({0, 1}, cached), all.slice(0, -1));
    EXPECT_EQ(hidden({0, 0}, cached).sizes(), at::IntArrayRef({0, all.size(1)}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(goldens()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace easydel::models
