// How often a model's weights are packed whole.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "easydel/models/adapter.h"
#include "easydel/models/model.h"
#include "easydel/ops/product.h"
#include "models/adapter_settings.h"
#include "support/data.h"

namespace easydel::models {
namespace {

void micro_batch(const Model& model, nn::Checkpointing checkpointing) {
  const Tensor tokens = at::arange(20, at::kLong) * 7 % model.vocabulary();
  nn::Pass pass = nn::Pass::over({0, 20});
  pass.activations().checkpointing = checkpointing;
  const Tensor hidden = model.forward({tokens}, pass).hidden;
  model.head().score(hidden, tokens, pass).logps.mean().backward();
}

TEST(Packing, NeverHappensInMicroBatchesThatAreTrained) {
  for (const char* name : {"llama", "mixtral", "deepseek_v3", "deepseek_v32"})
    for (const auto checkpointing : {nn::Checkpointing::none, nn::Checkpointing::nothing_saveable}) {
      LoadOptions options;
      options.training = true;
      // All tokens see all keys: choosing some would pack the keys.
      if (std::string_view(name) == "deepseek_v32") options.overrides = parse_yaml("{index_topk: 64}");
      const auto model = load_model(test::test_data(str("hf_goldens/", name)), options);
      const int64_t before = ops::packed_weights();
      for (int step = 0; step < 2; ++step) {
        for (int batch = 0; batch < 3; ++batch) micro_batch(*model, checkpointing);
        for (nn::Entry& entry : model->parameters().entries()) entry.written();
      }
      EXPECT_EQ(ops::packed_weights(), before) << name;
    }
}

// The backward reads them plain.
TEST(Packing, NeverHappensToTheFrozenWeightsUnderAdaptersThatAreTrained) {
  LoadOptions options;
  options.training = true;
  options.adapters = {{.config = test::lora("{r: 4, target_modules: all-linear}")}};
  const auto model = load_model(test::test_data("hf_goldens/llama"), options);
  const int64_t before = ops::packed_weights();
  for (int batch = 0; batch < 3; ++batch) micro_batch(*model, nn::Checkpointing::none);
  EXPECT_EQ(ops::packed_weights(), before);
}

TEST(Packing, HappensOnceForEachWeightThatIsOnlyRead) {
  for (const bool training : {false, true}) {
    LoadOptions options;
    options.training = training;
    const auto model = load_model(test::test_data("hf_goldens/llama"), options);
    const at::NoGradGuard no_gradient;
    const int64_t before = ops::packed_weights();
    int64_t layers = 0;
    for (const nn::Entry& entry : model->parameters().entries()) layers += nn::is_linear(entry) && !entry.head;
    for (int batch = 0; batch < 4; ++batch) {
      nn::Pass pass = nn::Pass::over({0, 20});
      model->forward({at::arange(20, at::kLong)}, pass);
    }
    EXPECT_EQ(ops::packed_weights() - before, layers);
  }
}

}  // namespace
}  // namespace easydel::models
