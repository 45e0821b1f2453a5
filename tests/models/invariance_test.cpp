// What training computes of a text and what generation computes of it token by token: the same bits, family by family.
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/tensor/mapped.h"
#include "easydel/tensor/threads.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::models {
namespace {

struct Case {
  std::string golden, dtype;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("hf_goldens"))) {
    const Value info = parse_file(entry.path() / "expected.json");
    const Value* const kind = info.find("kind");
    if (kind && kind->scalar != "causal") continue;
    for (const char* dtype : {"fp32", "bf16"}) out.push_back({entry.path().filename().string(), dtype});
  }
  std::ranges::sort(out, {}, [](const Case& one) { return one.golden + one.dtype; });
  return out;
}

class OneOrder : public testing::TestWithParam<Case> {};

TEST_P(OneOrder, TrainsAndGeneratesWithTheSameLogProbabilities) {
  const auto folder = test::test_data("hf_goldens/" + GetParam().golden);
  LoadOptions options;
  options.dtype = GetParam().dtype;
  options.training = true;
  const auto model = load_model(folder, options);
  const auto expected = weights::SafetensorsFile::open(folder / "expected.safetensors");
  const Tensor row = tensor::from_view(expected->at("input_ids")).to(at::kLong)[0];
  const int64_t length = row.size(0) - 1;
  const Tensor tokens = row.slice(0, 0, length), next = row.slice(0, 1);

  const auto trained = [&] {
    nn::Pass pass = nn::Pass::over({0, length});
    return model->head().score(model->forward({tokens}, pass).hidden, next).logps.detach();
  };
  const Tensor alone = trained();
  {
    const tensor::Threads two(2);
    EXPECT_TRUE(trained().equal(alone)) << "by two threads";
  }
  nn::Pass both = nn::Pass::over({0, 7, 7 + length});
  const Tensor beside =
      model->head()
          .score(model->forward({at::cat({tokens.slice(0, 0, 7), tokens})}, both).hidden.slice(0, 7), next)
          .logps;
  EXPECT_TRUE(beside.equal(alone)) << "beside another text: " << (beside - alone).abs().max().item<double>();

  const at::NoGradGuard no_gradient;
  const auto cache = model->make_cache(1, length);
  std::vector<Tensor> steps;
  for (int64_t i = 0; i < length; ++i) {
    nn::Pass pass = nn::Pass::next(*cache, {0}, {1});
    steps.push_back(model->forward({tokens.slice(0, i, i + 1)}, pass).hidden);
  }
  const Tensor cached = model->head().score(at::cat(steps), next).logps;
  EXPECT_TRUE(cached.equal(alone)) << "through the cache: " << (cached - alone).abs().max().item<double>();
}

INSTANTIATE_TEST_SUITE_P(All, OneOrder, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.golden + "_" + info.param.dtype;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace easydel::models
