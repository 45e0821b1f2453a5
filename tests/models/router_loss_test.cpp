#include "easydel/models/router_loss.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/document.h"
#include "easydel/ops/routing.h"
#include "easydel/probe/logits.h"
#include "easydel/tensor/mapped.h"
#include "support/data.h"

namespace easydel::models {
namespace {

// Goldens of which transformers' loss with the routers' is known.
std::vector<std::string> goldens_with_router_losses() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("hf_goldens")))
    if (parse_file(entry.path() / "expected.json").find("loss_with_aux"))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class RouterLosses : public testing::TestWithParam<std::string> {};

TEST_P(RouterLosses, AreInTheLossWhereConfigJsonAsksForThem) {
  const auto golden = test::test_data("hf_goldens/" + GetParam());
  const Value info = parse_file(golden / "expected.json");
  const auto expected = weights::SafetensorsFile::open(golden / "expected.safetensors");
  const test::TemporaryFolder work;
  std::filesystem::create_directories(work / "model");
  std::filesystem::create_symlink(golden / "model.safetensors", work / "model/model.safetensors");
  Value config = parse_file(golden / "config.json");
  config.set("output_router_logits", Value::boolean(true));
  test::write_file(work / "model/config.json", to_json(config));
  std::vector<weights::OutTensor> inputs;
  for (const char* name : {"input_ids", "attention_mask", "labels"})
    inputs.push_back(tensor::to_file(name, tensor::from_view(expected->at(name)), at::kLong));
  weights::write_safetensors(work / "inputs.safetensors", inputs);
  probe::logits(work / "model", work / "inputs.safetensors", work / "out.safetensors", {});
  const auto found = weights::SafetensorsFile::open(work / "out.safetensors");
  for (const auto& [ours, theirs] : {std::pair("aux_loss", "aux_loss"), std::pair("loss", "loss_with_aux")}) {
    const double want = *info.find(theirs)->as_double();
    EXPECT_NEAR(tensor::from_view(found->at(ours)).item<double>(), want, 2e-5 * want) << theirs;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RouterLosses, testing::ValuesIn(goldens_with_router_losses()),
                         [](const auto& info) { return info.param; });

// transformers' loss for the same inputs: 5.125441 without.
TEST(LogitLoss, OfBambaCountsTheLogNormalizersOfAllTokens) {
  const auto golden = test::test_data("hf_goldens/bamba");
  const auto expected = weights::SafetensorsFile::open(golden / "expected.safetensors");
  const test::TemporaryFolder work;
  std::filesystem::create_directories(work / "model");
  std::filesystem::create_symlink(golden / "model.safetensors", work / "model/model.safetensors");
  Value config = parse_file(golden / "config.json");
  config.set("z_loss_coefficient", Value::number(0.1));
  test::write_file(work / "model/config.json", to_json(config));
  std::vector<weights::OutTensor> inputs;
  for (const char* name : {"input_ids", "attention_mask", "labels"})
    inputs.push_back(tensor::to_file(name, tensor::from_view(expected->at(name)), at::kLong));
  weights::write_safetensors(work / "inputs.safetensors", inputs);
  probe::logits(work / "model", work / "inputs.safetensors", work / "out.safetensors", {});
  const auto found = weights::SafetensorsFile::open(work / "out.safetensors");
  EXPECT_NEAR(tensor::from_view(found->at("loss")).item<double>(), 8.174518585, 2e-4);
  EXPECT_NEAR(tensor::from_view(found->at("grad_norm_total")).item<double>(), 6.102133838, 6e-4);
}

const char* const small_mixtral =
    R"({"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 24, "vocab_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
  "initializer_range": 0.3, "output_router_logits": true, "router_aux_loss_coef": 0.5, "router_z_loss_coef": 0.25})";

// The gradients of the router losses alone.
std::map<std::string, Tensor> gradients(nn::Checkpointing checkpointing) {
  const test::TemporaryFolder work;
  test::write_file(work / "config.json", small_mixtral);
  LoadOptions options;
  options.training = true;
  const auto model = load_model(work.path(), options);
  nn::Pass pass = nn::Pass::over({0, 9, 20});
  pass.activations().checkpointing = checkpointing;
  const Outputs outputs = model->forward({at::arange(20, at::kLong)}, pass);
  const RouterTerms terms = router_terms(*model, outputs, pass);
  EXPECT_TRUE(terms.sum.allclose(terms.balance * 0.5 + terms.z * 0.25));
  terms.sum.backward();
  std::map<std::string, Tensor> found;
  for (const nn::Entry& entry : model->parameters().entries())
    if (entry.shard.grad().defined()) found[entry.path] = entry.shard.grad();
  return found;
}

TEST(RouterTerms, HaveTheSameGradientsWhereLayersAreComputedAgain) {
  const auto plain = gradients(nn::Checkpointing::none), again = gradients(nn::Checkpointing::nothing_saveable);
  EXPECT_TRUE(plain.contains("model.layers.1.block_sparse_moe.gate.weight"));
  for (const auto& [name, gradient] : plain) {
    const auto found = again.find(name);
    if (found == again.end())
      EXPECT_EQ(gradient.abs().max().item<float>(), 0.0f) << name;
    else
      EXPECT_TRUE(gradient.equal(found->second)) << name;
  }
}

TEST(RouterTerms, AreNoneWhereNoRouterRan) { EXPECT_FALSE(router_statistics(Outputs{}).has_value()); }

TEST(RouterStatistics, SayHowEvenlyExpertsAreMet) {
  Outputs outputs;
  outputs.extras["router_logits.0"] = at::zeros({3, 4});
  outputs.extras["expert_tokens.0"] = ops::tokens_of_experts(at::arange(6, at::kLong).view({3, 2}) % 3, 4);
  const auto found = router_statistics(outputs);
  EXPECT_NEAR(found->entropy, std::log(4.0), 1e-6);
  EXPECT_NEAR(found->busiest_load, 2 / 1.5, 1e-6);
  EXPECT_NEAR(found->idle_experts, 0.25, 1e-6);
}

}  // namespace
}  // namespace easydel::models
