// Training on a text and reading it token by token from a cache give the same bits, family by family, alone, beside
// another text and by any number of threads. Tokens that were generated are read here as a prompt is: the arithmetic of
// compressed attention (nn/mla.h) and the steps of Mamba-2 (nn/mamba.h) are others for them, wherever they are
// computed.
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/tensor/mapped.h"
#include "easydel/tensor/threads.h"
#include "easydel/weights/safetensors.h"
#include "models/golden_cases.h"
#include "support/data.h"

namespace easydel::models {
namespace {

const Value& text_part(const Value& config) {
  const Value* const text = config.find("text_config");
  return text ? *text : config;
}

// Whether rotary frequencies depend on how long the text is at that time.
bool turns_by_length(const Value& config) {
  for (const char* key : {"rope_parameters", "rope_scaling"})
    for (const char* name : {"rope_type", "type"}) {
      const Value* const rope = config.find(key);
      const Value* const type = rope && rope->is_map() ? rope->find(name) : nullptr;
      if (type && (type->scalar == "dynamic" || type->scalar == "longrope")) return true;
    }
  return false;
}

class OneOrder : public testing::TestWithParam<GoldenCase> {};

TEST_P(OneOrder, TrainsAndGeneratesWithTheSameLogProbabilities) {
  const auto folder = test::test_data("hf_goldens/" + GetParam().golden);
  LoadOptions options;
  options.dtype = dtype_setting(GetParam().dtype, "dtype");
  options.training = true;
  const auto model = load_model(folder, options);
  const auto expected = weights::SafetensorsFile::open(folder / "expected.safetensors");
  const Tensor row = tensor::from_view(expected->at("input_ids")).to(at::kLong)[0];
  const int64_t length = row.size(0) - 1;
  const Tensor tokens = row.slice(0, 0, length), next = row.slice(0, 1);

  const auto trained = [&] {
    nn::Pass pass = nn::Pass::over({0, length});
    return model->head().score(model->forward({tokens}, pass).hidden, next, pass).logps.detach();
  };
  const auto expect_same = [](const Tensor& found, const Tensor& right, const char* how) {
    EXPECT_TRUE(found.equal(right)) << how << ": " << (found - right).abs().max().item<double>();
  };
  const Tensor alone = trained();
  {
    const tensor::Threads two(2);
    expect_same(trained(), alone, "by two threads");
  }
  nn::Pass both = nn::Pass::over({0, 7, 7 + length});
  const Tensor beside =
      model->head()
          .score(model->forward({at::cat({tokens.slice(0, 0, 7), tokens})}, both).hidden.slice(0, 7), next, both)
          .logps;
  expect_same(beside, alone, "beside another text");

  if (turns_by_length(text_part(parse_file(folder / "config.json")))) return;
  const at::NoGradGuard no_gradient;
  const auto cache = model->make_cache(1, length);
  std::vector<Tensor> steps;
  for (int64_t i = 0; i < length; ++i) {
    const auto memory = cache->next({0}, {1});
    nn::Pass pass = nn::Pass::next(*memory, {length});
    steps.push_back(model->forward({tokens.slice(0, i, i + 1)}, pass).hidden);
  }
  nn::Pass last;
  const Tensor cached = model->head().score(at::cat(steps), next, last).logps;
  expect_same(cached, alone, "through the cache");
}

INSTANTIATE_TEST_SUITE_P(All, OneOrder, testing::ValuesIn(causal_goldens()), name_of_case);

}  // namespace
}  // namespace easydel::models
