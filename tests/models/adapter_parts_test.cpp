// Single rows of embeddings, stacked experts, and DoRA of embeddings and output layers, as PEFT has them.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/base/log.h"
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

std::shared_ptr<Model> load(const std::string& name, const std::vector<AdapterOptions>& adapters,
                            bool training = false) {
  LoadOptions options;
  options.adapters = adapters;
  options.training = training;
  return load_model(golden(name), options);
}

AdapterOptions options_of(const std::string& yaml) { return {.config = test::lora(yaml)}; }

// Of scripts/adapter_goldens.py.
Tensor ids(int64_t vocabulary = 128) {
  Tensor out = (at::arange(6, at::kLong) * 35 + 3).remainder(128);
  if (vocabulary == 130) out.narrow(0, 4, 2).copy_(at::arange(128, 130, at::kLong));
  return out;
}

Tensor logits_of(const Model& model, const std::shared_ptr<const nn::LoadedAdapter>& adapter = nullptr) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, 6});
  if (adapter) pass.stream().sequence_adapters = {adapter};
  return model.head().logits(model.forward({ids(model.vocabulary())}, pass).hidden, pass);
}

double distance(const Tensor& one, const Tensor& other) { return (one - other).abs().max().item<double>(); }

struct Case {
  const char *name, *model;
  bool by_prompt = true;
};
void PrintTo(const Case& of, std::ostream* to) { *to << of.name; }

class APartOfPeft : public testing::TestWithParam<Case> {
 protected:
  Tensor recorded(const std::string& ending) const {
    const auto file = weights::SafetensorsFile::open(test::test_data("adapters/logits.safetensors"));
    return tensor::from_view(file->at(GetParam().name + ending));
  }
  const fs::path folder_ = test::test_data(std::string("adapters/") + GetParam().name);
};

TEST_P(APartOfPeft, HasItsLogitsAloneMergedAndSaved) {
  const auto model = load(GetParam().model, {adapter_in(folder_)});
  EXPECT_LT(distance(logits_of(*model), recorded("")), 2e-5);
  if (model->vocabulary() == 128) {
    EXPECT_GT(distance(logits_of(*load(GetParam().model, {})), recorded("")), 1e-2);
  }
  const test::TemporaryFolder saved;
  save_adapter(*model, *model->adapters().front(), saved.path(), "");
  const auto ours = weights::SafetensorsFile::open(saved / "adapter_model.safetensors"),
             theirs = weights::SafetensorsFile::open(folder_ / "adapter_model.safetensors");
  std::vector<std::string> names = theirs->names();
  // PEFT saves the values of a tied output layer twice if the embedding grew.
  if (GetParam().model == std::string("gemma2"))
    std::erase_if(names, [](const std::string& name) { return name.find("lm_head") != std::string::npos; });
  ASSERT_EQ(ours->names(), names);
  for (const std::string& name : ours->names()) {
    EXPECT_EQ(ours->at(name).shape, theirs->at(name).shape) << name;
    EXPECT_TRUE(std::ranges::equal(ours->at(name).bytes, theirs->at(name).bytes)) << name;
  }
  save_model(*model, saved / "merged");
  LoadOptions plain;
  EXPECT_LT(distance(logits_of(*load_model(saved / "merged", plain)), recorded(".merged")), 2e-5);
  bool shares = false;
  for (const Adapter::Layer& layer : model->adapters().front()->layers()) shares |= layer.shared;
  if (shares) return;
  const Tensor before = logits_of(*model);
  model->adapters().front()->merge();
  EXPECT_LT(distance(logits_of(*model), recorded(".merged")), 2e-5);
  model->adapters().front()->unmerge();
  EXPECT_TRUE(logits_of(*model).equal(before));
}

TEST_P(APartOfPeft, IsChosenByPrompt) {
  const auto model = load(GetParam().model, {});
  Adapters several(model);
  if (!GetParam().by_prompt) {
    EXPECT_THROW(several.add("one", folder_), UserError);
    return;
  }
  EXPECT_LT(distance(logits_of(*model, several.add("one", folder_)), recorded("")), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Peft, APartOfPeft,
                         testing::Values(Case{"tokens", "llama"}, Case{"tokens_tied", "gemma2"},
                                         Case{"tokens_both", "llama"}, Case{"new_tokens", "llama", false},
                                         Case{"new_tokens_tied", "gemma2", false},
                                         Case{"new_tokens_both", "llama", false},
                                         Case{"new_tokens_whole", "llama", false}, Case{"experts", "mixtral", false},
                                         Case{"experts_alone", "qwen3_moe", false},
                                         Case{"experts_transposed", "gpt_oss", false}, Case{"router", "mixtral", false},
                                         Case{"router_bias", "gpt_oss"}, Case{"parameters", "llama"},
                                         Case{"dora_embedding", "llama"}, Case{"dora_lm_head", "llama"}));

// Of a loss after one backward, by the parameters' paths.
std::map<std::string, Tensor> gradients_of(const Model& model) {
  nn::Pass pass = nn::Pass::over({0, 6});
  const Tensor hidden = model.forward({ids()}, pass).hidden;
  model.head().score(hidden, ids(), pass).logps.sum().backward();
  std::map<std::string, Tensor> out;
  for (const nn::Entry& entry : model.parameters().entries())
    if (entry.shard.grad().defined()) out[entry.path] = entry.shard.grad().clone();
  return out;
}

double loss_of(const Model& model) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, 6});
  return model.head()
      .score(model.forward({ids()}, pass).hidden, ids(), pass)
      .logps.to(at::kDouble)
      .sum()
      .item<double>();
}

class TrainedParts : public testing::TestWithParam<Case> {};

// The gradient of each parameter against a difference of losses along it.
TEST_P(TrainedParts, HaveTheGradientsOfTheirLoss) {
  const auto model = load(GetParam().model, {options_of(GetParam().name)}, /*training=*/true);
  int64_t found = 0;
  const std::map<std::string, Tensor> gradients = gradients_of(*model);
  for (const nn::Entry& entry : model->parameters().entries())
    EXPECT_EQ(gradients.contains(entry.path), bool(entry.adapter)) << entry.path;
  for (const auto& [path, gradient] : gradients) {
    nn::Entry& entry = *model->parameters().find(path);
    const double slope = gradient.square().sum().item<double>();
    if (slope < 0.25) continue;  // what fp32 leaves of smaller differences is noise
    ++found;
    const at::NoGradGuard no_gradient;
    const Tensor before = entry.shard.clone(), step = gradient * (3e-4 / std::sqrt(slope));
    double ends[2];
    for (const int side : {0, 1}) {
      entry.shard.copy_(before + step * (side == 0 ? -1.0 : 1.0));
      entry.written();
      ends[side] = loss_of(*model);
    }
    entry.shard.copy_(before);
    entry.written();
    const double along = (ends[1] - ends[0]) / 6e-4;
    EXPECT_NEAR(along / std::sqrt(slope), 1.0, 2e-2) << path;
  }
  EXPECT_GT(found, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Models, TrainedParts,
    testing::Values(Case{"{r: 2, init: random, target_modules: [q_proj], trainable_token_indices: {embed_tokens: [3, "
                         "38], lm_head: [108]}}",
                         "llama"},
                    Case{"{r: 2, init: random, target_modules: [q_proj], trainable_token_indices: [3, 38]}", "gemma2"},
                    Case{"{r: 2, init: random, target_parameters: [gate_up_proj, down_proj]}", "mixtral"},
                    Case{"{r: 2, init: random, target_parameters: [gate_up_proj, down_proj]}", "gpt_oss"},
                    Case{"{r: 2, init: random, target_parameters: [gate.weight]}", "mixtral"}));

// Ids follow the tokenizer's, which may have fewer tokens than the embedding has rows.
class NewTokens : public testing::TestWithParam<Case> {};

TEST_P(NewTokens, StartAsTheMeanAndLearnAlone) {
  std::string said;
  log::set_sink([&](log::Level, std::string_view line) { said += std::string(line) + "\n"; });
  AdapterOptions options = options_of("{r: 2, target_modules: [q_proj]}");
  options.added = {127, 128, 129};
  const auto model = load(GetParam().model, {options}, /*training=*/true), plain = load(GetParam().model, {});
  log::set_sink(nullptr);
  EXPECT_EQ(model->vocabulary(), 130);
  const at::NoGradGuard no_gradient;
  const std::string table = "model.embed_tokens.weight", head = "lm_head.weight";
  for (const std::string& path : {table, head}) {
    const nn::Entry* const old = plain->parameters().find(path);
    ASSERT_TRUE(old || path == head);
    if (!old) continue;
    const Tensor mean = old->shard.narrow(0, 0, 127).to(at::kDouble).mean(0).to(at::kFloat);
    const std::string rows = path.substr(0, path.size() - 6) + "token_adapter.trainable_tokens_delta.default";
    EXPECT_LT(distance(model->parameters().find(rows)->shard, mean.expand({3, -1})), 1e-6) << path;
    const nn::Entry& base = *model->parameters().find(path);
    EXPECT_FALSE(base.trainable);
    EXPECT_TRUE(base.shard.narrow(0, 0, 128).equal(old->shard)) << path;
    EXPECT_LT(distance(base.shard.narrow(0, 128, 2), old->shard.mean(0).expand({2, -1})), 1e-6) << path;
  }
  const bool tied = plain->parameters().find(head) == nullptr;
  EXPECT_EQ(model->parameters().find("lm_head.token_adapter.trainable_tokens_delta.default") == nullptr, tied);
  EXPECT_EQ(said,
            "lora.added_tokens: 3 new tokens, ids from 127 to 129; their rows start as the mean of the 127 before "
            "them\n");
  // Saved and loaded, alone and merged.
  const test::TemporaryFolder saved;
  for (const nn::Entry& entry : model->parameters().entries())
    if (entry.adapter) const_cast<nn::Entry&>(entry).shard.add_(0.01), const_cast<nn::Entry&>(entry).written();
  save_adapter(*model, *model->adapters().front(), saved / "adapter", "");
  const Value config = parse_file(saved / "adapter/adapter_config.json");
  EXPECT_EQ(to_json(*config.find("trainable_token_indices")),
            tied ? "[127, 128, 129]" : R"({"embed_tokens": [127, 128, 129], "lm_head": [127, 128, 129]})");
  const Tensor logits = logits_of(*model);
  EXPECT_TRUE(logits_of(*load(GetParam().model, {adapter_in(saved / "adapter")})).equal(logits));
  save_model(*model, saved / "merged");
  const auto merged = load_model(saved / "merged", LoadOptions{});
  EXPECT_EQ(merged->vocabulary(), 130);
  EXPECT_LT(distance(logits_of(*merged), logits), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, NewTokens, testing::Values(Case{"untied", "llama"}, Case{"tied", "gemma2"}));

TEST(PartsOfAdapters, SayWhatTheyDoNotFind) {
  const auto refused = [](const char* model, const char* yaml) {
    return test::refusal([&] { load(model, {options_of(yaml)}); });
  };
  EXPECT_EQ(refused("llama", "{target_modules: [q_proj], trainable_token_indices: [3, 128]}"),
            "lora.trainable_token_indices: 128 is not a row of model.embed_tokens, which has 128\n    give ids of its "
            "tokens");
  EXPECT_EQ(refused("llama", "{target_modules: [q_proj], trainable_token_indices: {wte: [3]}}"),
            "lora.trainable_token_indices: 'wte' is not an embedding or output layer\n    for example: embed_tokens, "
            "lm_head");
  EXPECT_EQ(
      refused("llama", "{target_modules: [embed_tokens], trainable_token_indices: {embed_tokens: [3]}}"),
      "lora: trainable_token_indices and target_modules both name model.embed_tokens\n    train its rows, or adapt "
      "it");
  AdapterOptions far = options_of("{target_modules: [q_proj]}");
  far.added = {140};
  EXPECT_EQ(test::refusal([&] { load("llama", {far}); }),
            "lora.added_tokens: the tokenizer has 140 tokens already, and the model's embedding 128 rows\n    give the "
            "tokenizer of the model");
  AdapterOptions both = options_of("{target_modules: [embed_tokens]}");
  both.added = {128};
  EXPECT_EQ(test::refusal([&] { load("llama", {both}); }),
            "lora: added_tokens and target_modules both name model.embed_tokens\n    train its rows, or adapt it");
  EXPECT_EQ(test::refusal([] { options_of("{added_tokens: [<a>, <b>, <a>]}"); }),
            "lora:1:16: added_tokens: '<a>' is there twice\n    leave one of them out\n1 problem in lora; nothing was "
            "run.");
  EXPECT_EQ(refused("llama", "{target_parameters: [experts.down_proj]}"),
            "lora.target_parameters: 'experts.down_proj' finds no weight of a linear layer, a router or stacked "
            "experts\n    known: down_proj.weight, gate_proj.weight, k_proj.weight, lm_head.weight, o_proj.weight, "
            "q_proj.weight, up_proj.weight, v_proj.weight");
  EXPECT_EQ(refused("mixtral", "{target_parameters: [experts.w1]}"),
            "lora.target_parameters: 'experts.w1' finds no weight of a linear layer, a router or stacked experts\n    "
            "known: experts.down_proj, experts.gate_up_proj, gate.weight, k_proj.weight, lm_head.weight, "
            "o_proj.weight, q_proj.weight, v_proj.weight");
  EXPECT_EQ(refused("llama", "{target_modules: [q_proj], target_parameters: [q_proj.weight]}"),
            "lora: target_modules and target_parameters both name model.layers.0.self_attn.q_proj\n    leave it out of "
            "one of them");
  EXPECT_EQ(refused("gpt2", "{target_parameters: [c_attn.weight]}"),
            "lora: target_parameters with a weight that is stored transposed is not built yet "
            "(transformer.h.0.attn.c_attn.weight)\n    leave it out of target_parameters, or name the layer in "
            "target_modules");
  EXPECT_EQ(refused("mixtral", "{target_parameters: [gate.weight], init_lora_weights: pissa}"),
            "lora: init_lora_weights: pissa, olora or loftq on target_parameters is not built yet "
            "(model.layers.0.mlp.gate.weight)\n    leave it out of target_parameters, or name the layer in "
            "target_modules");
  EXPECT_EQ(test::refusal([] { options_of("{target_parameters: [experts.down_proj], dropout: 0.1}"); }),
            "lora:1:21: target_parameters: does not work with use_dora, lora_bias or dropout\n    leave these out\n"
            "1 problem in lora; nothing was run.");
  EXPECT_EQ(test::refusal([] { options_of("{trainable_token_indices: [3, 3]}"); }),
            "lora:1:27: trainable_token_indices: 3 is there twice\n    leave one of them out\n1 problem in lora; "
            "nothing was run.");
}

}  // namespace
}  // namespace easydel::models
