#include "easydel/models/adapter_start.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/models/adapter.h"
#include "easydel/models/adapters.h"
#include "easydel/models/model.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "models/adapter_settings.h"
#include "support/data.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;
using test::golden;
using test::lora;

std::shared_ptr<Model> load(const std::string& name, const std::vector<AdapterOptions>& adapters,
                            std::optional<nn::Quantization> quantization = {}) {
  LoadOptions options;
  options.adapters = adapters;
  options.quantization = std::move(quantization);
  return load_model(golden(name), options);
}

// Of the six tokens of scripts/adapter_goldens.py.
Tensor logits_of(const Model& model) {
  const at::NoGradGuard no_gradient;
  const Tensor ids = (at::arange(6, at::kLong) * 35 + 3).remainder(128);
  nn::Pass pass = nn::Pass::over({0, 6});
  return model.head().logits(model.forward({ids}, pass).hidden, pass);
}

double distance(const Tensor& one, const Tensor& other) { return (one - other).abs().max().item<double>(); }

struct Case {
  const char *name, *model;
};
void PrintTo(const Case& of, std::ostream* to) { *to << of.name; }

class AStartOfPeft : public testing::TestWithParam<Case> {
 protected:
  Tensor recorded(const std::string& ending) const {
    const auto file = weights::SafetensorsFile::open(test::test_data("adapters/logits.safetensors"));
    return tensor::from_view(file->at(GetParam().name + ending));
  }
};

// Folders say how the adapter started, and the base that belongs to A and B is found again.
TEST_P(AStartOfPeft, IsReadWithItsBase) {
  const fs::path folder = test::test_data(std::string("adapters/") + GetParam().name);
  const auto model = load(GetParam().model, {adapter_in(folder)});
  EXPECT_LT(distance(logits_of(*model), recorded("")), 2e-5);
  model->adapters().front()->merge();
  EXPECT_LT(distance(logits_of(*model), recorded(".merged")), 2e-5);
}

TEST_P(AStartOfPeft, IsOursToo) {
  AdapterOptions options = adapter_in(test::test_data(std::string("adapters/") + GetParam().name));
  options.folder.clear();
  EXPECT_LT(distance(logits_of(*load(GetParam().model, {options})), recorded(".start")), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Peft, AStartOfPeft,
                         testing::Values(Case{"pissa", "llama"}, Case{"pissa_dora", "llama"},
                                         Case{"pissa_conv1d", "gpt2"}, Case{"pissa_lm_head", "llama"},
                                         Case{"olora", "llama"}, Case{"loftq_4", "llama"}, Case{"loftq_8", "llama"}));

class StartsOf : public testing::TestWithParam<const char*> {};

// The folder of a new adapter, read over the model's own files, is the same model to the bit.
TEST_P(StartsOf, AreFoundAgainFromTheSavedFolder) {
  const auto model = load("qwen3", {{.config = lora(str("{r: 3, alpha: 2, init_lora_weights: ", GetParam(), "}"))}});
  const test::TemporaryFolder folder;
  save_adapter(*model, *model->adapters().front(), folder.path(), "some/model");
  EXPECT_EQ(parse_file(folder / "adapter_config.json").find("init_lora_weights")->scalar, GetParam());
  const Tensor again = logits_of(*load("qwen3", {adapter_in(folder.path())}));
  EXPECT_TRUE(again.equal(logits_of(*model)));
  // A reference is the model before the start.
  EXPECT_TRUE(logits_of(*copy_model(*model)).equal(logits_of(*load("qwen3", {}))));
  EXPECT_GT(distance(logits_of(*load("qwen3", {})), again), 0.0);
}

INSTANTIATE_TEST_SUITE_P(Words, StartsOf, testing::Values("pissa", "pissa_niter_4", "olora", "loftq"));

TEST(LowRankStart, OfRandomizedPissaComesCloseToTheExactOne) {
  const Tensor weight = load("llama", {})->parameters().find("model.layers.1.mlp.up_proj.weight")->shard;
  const auto product = [&](const char* word) {
    const LowRankStart start = low_rank_start(lora(str("{r: 4, alpha: 8, init: ", word, "}")), "up_proj", weight);
    EXPECT_LT(distance(start.base + at::matmul(start.b, start.a) * 2, weight), 1e-6);
    return at::matmul(start.b, start.a);
  };
  const Tensor exact = product("pissa");
  EXPECT_LT(distance(product("pissa_niter_400"), exact), 1e-4);
  EXPECT_GT(distance(product("pissa_niter_1"), exact), 1e-4);
}

TEST(LowRankStart, AboveTheSmallerSideHasZeros) {
  const Tensor weight = load("llama", {})->parameters().find("model.layers.0.self_attn.k_proj.weight")->shard;
  const LowRankStart start = low_rank_start(lora("{r: 20, alpha: 20, init: pissa}"), "k_proj", weight);
  ASSERT_EQ(start.a.size(0), 20);
  EXPECT_EQ(start.a.narrow(0, 16, 4).abs().max().item<float>(), 0.0f);
  EXPECT_LT(start.base.abs().max().item<float>(), 1e-5f);
}

// The start reads the plain values, and codes are made of what stays.
TEST(LowRankStart, ComesBeforeTheCodes) {
  const AdapterOptions pissa{.config = lora("{r: 3, init: pissa, target_modules: [q_proj]}")};
  const nn::Quantization nf4{.format = quant::format_of({.method = "nf4"}, "quantization")};
  const auto plain = load("llama", {pissa}), codes = load("llama", {pissa}, nf4);
  const auto of = [](const Model& model, const char* path) { return model.parameters().find(path)->shard; };
  const char* const a = "model.layers.0.self_attn.q_proj.lora_A.default.weight";
  EXPECT_TRUE(of(*plain, a).equal(of(*codes, a)));
  EXPECT_FALSE(of(*codes, "model.layers.0.self_attn.q_proj.weight").defined());
}

TEST(LowRankStart, RefusesWhatItCannotChange) {
  EXPECT_EQ(test::refusal([] { load("gemma2", {{.config = lora("{init: olora, target_modules: [embed_tokens]}")}}); }),
            "lora: init_lora_weights: pissa, olora or loftq on an embedding is not built yet (model.embed_tokens)\n"
            "    leave the layer out of target_modules, or train plain LoRA");
  EXPECT_EQ(
      test::refusal([] { load("gemma2", {{.config = lora("{init: pissa, target_modules: [lm_head]}")}}); }),
      "lora: init_lora_weights: pissa, olora or loftq on an output layer that reads the embedding is not built yet "
      "(lm_head)\n    leave the layer out of target_modules, or train plain LoRA");
  LoadOptions codes;
  codes.adapters = {{.config = lora("{init: pissa}")}};
  EXPECT_EQ(test::refusal([&] { load_model(test::test_data("codes/bnb_nf4"), codes); }),
            "lora: init_lora_weights: pissa starts from the values of a weight, and model.layers.0.self_attn.o_proj is "
            "in codes\n    give the unquantized model (with quantization.model it becomes codes after the start), or "
            "start by default");
  Adapters several(load("llama", {}));
  const fs::path folder = test::test_data("adapters/pissa");
  EXPECT_EQ(test::refusal([&] { several.add("one", folder); }),
            folder.string() +
                ": changes the model's weights (init_lora_weights: pissa), which adapters chosen by prompt cannot\n"
                "    give it alone: lora.adapter, or --adapter with a folder");
  EXPECT_EQ(test::refusal([] { lora("{init: pissa_niter_x}"); }),
            "lora:1:8: init_lora_weights: 'pissa_niter_x' has no number of iterations\n    for example: "
            "pissa_niter_16\n1 problem in lora; nothing was run.");
  EXPECT_EQ(
      test::refusal([] { lora("{init: loftq, loftq_config: {loftq_bits: 3}}"); }),
      "lora:1:42: loftq_config.loftq_bits: 3 bits are not known\n    write 4 or 8\n1 problem in lora; nothing was "
      "run.");
}

}  // namespace
}  // namespace easydel::models
