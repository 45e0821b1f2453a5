// Training on a text and generating it token by token give the same bits, family by family.
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/tensor/mapped.h"
#include "easydel/tensor/threads.h"
#include "easydel/weights/safetensors.h"
#include "models/golden_cases.h"
#include "support/data.h"

namespace easydel::models {
namespace {

// What keeps a family from one order of additions.
enum class Order {
  one,      // nothing
  scanned,  // recurrences run in chunks over a text and step by step after a cache; or attention is the reference's
  by_place  // in fp32: an activation that only ATen has, which computes the ends of its loops differently
};

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

Order order_of(const Value& config) {
  static const std::set<std::string, std::less<>> scanned = {"minimax", "rwkv", "xlstm"};
  const Value* const alibi = config.find("alibi");
  const bool reference = alibi && alibi->as_bool().value_or(false);
  if (reference || scanned.contains(config.find("model_type")->scalar)) return Order::scanned;
  const Value* const activation = config.find("hidden_act");
  return activation && activation->scalar == "mish" ? Order::by_place : Order::one;
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
  const bool bf16 = GetParam().dtype == "bf16";
  const Value document = parse_file(folder / "config.json");
  const Value& config = text_part(document);
  const Order order = order_of(config);
  const auto expect_same = [&](const Tensor& found, const Tensor& right, bool to_the_bit, const char* how) {
    const double apart = (found - right).abs().max().item<double>();
    if (to_the_bit) {
      EXPECT_TRUE(found.equal(right)) << how << ": " << apart;
    } else if (!bf16) {
      EXPECT_LE(apart, 5e-3) << how;  // two families cut steps off in whole texts alone, as transformers does
    }
  };
  const Tensor alone = trained();
  {
    const tensor::Threads two(2);
    expect_same(trained(), alone, true, "by two threads");
  }
  nn::Pass both = nn::Pass::over({0, 7, 7 + length});
  const Tensor beside =
      model->head()
          .score(model->forward({at::cat({tokens.slice(0, 0, 7), tokens})}, both).hidden.slice(0, 7), next, both)
          .logps;
  expect_same(beside, alone, order != Order::scanned && (order != Order::by_place || bf16), "beside another text");

  if (turns_by_length(config)) return;
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
  expect_same(cached, alone, order == Order::one || (order == Order::by_place && bf16), "through the cache");
}

INSTANTIATE_TEST_SUITE_P(All, OneOrder, testing::ValuesIn(causal_goldens()), name_of_case);

}  // namespace
}  // namespace easydel::models
