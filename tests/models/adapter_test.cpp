#include "easydel/models/adapter.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/nn/checkpointing_config.h"
#include "easydel/weights/folder.h"
#include "easydel/weights/safetensors.h"
#include "models/adapter_settings.h"
#include "support/data.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;
using test::golden;
using test::lora;

std::shared_ptr<Model> load(const fs::path& folder, const std::vector<AdapterOptions>& adapters, bool training = false,
                            DTypeSetting dtype = DTypeSetting::automatic) {
  LoadOptions options;
  options.dtype = dtype;
  options.adapters = adapters;
  options.training = training;
  return load_model(folder, options);
}

std::shared_ptr<Model> with_lora(const fs::path& folder, const std::string& yaml, bool training = false,
                                 DTypeSetting dtype = DTypeSetting::automatic) {
  return load(folder, {{.config = lora(yaml)}}, training, dtype);
}

Tensor tokens_of(const Model& model, int64_t count) { return at::arange(count, at::kLong) * 7 % model.vocabulary(); }

// Of whole sequences, of a prompt through the cache and of a token after it; and scores.
std::vector<Tensor> results(const Model& model, bool adapters = true) {
  const at::NoGradGuard no_gradient;
  const Tensor tokens = tokens_of(model, 12);
  nn::Pass whole = nn::Pass::over({0, 5, 12});
  whole.stream().adapters = adapters;
  const Tensor hidden = model.forward({tokens}, whole).hidden;
  std::vector<Tensor> out = {model.head().logits(hidden, whole), model.head().score(hidden, tokens, whole).logps};
  const auto cache = model.make_cache(1, 12);
  for (const auto& [begin, count] : {std::pair{0, 9}, {9, 1}}) {
    const auto memory = cache->next({0}, {count});
    nn::Pass pass = nn::Pass::next(*memory, {9});
    pass.stream().adapters = adapters;
    out.push_back(model.head().logits(model.forward({tokens.narrow(0, begin, count)}, pass).hidden, pass));
  }
  return out;
}

bool same_bits(const std::vector<Tensor>& one, const std::vector<Tensor>& other) {
  for (size_t i = 0; i < one.size(); ++i)
    if (!one[i].view(at::kInt).equal(other[i].view(at::kInt))) return false;
  return one.size() == other.size();
}

double distance(const std::vector<Tensor>& one, const std::vector<Tensor>& other) {
  double most = 0;
  for (size_t i = 0; i < one.size(); ++i) most = std::max(most, (one[i] - other[i]).abs().max().item<double>());
  return most;
}

constexpr const char* random_lora = "{r: 3, alpha: 2, init_lora_weights: random}";

struct Case {
  const char *model, *yaml;
  DTypeSetting dtype = DTypeSetting::automatic;
};
void PrintTo(const Case& of, std::ostream* to) { *to << of.model << " " << of.yaml; }

class ANewAdapter : public testing::TestWithParam<Case> {};

TEST_P(ANewAdapter, ChangesNoBit) {
  const Case& of = GetParam();
  const auto model = with_lora(golden(of.model), of.yaml, false, of.dtype);
  EXPECT_FALSE(model->adapters().front()->layers().empty());
  EXPECT_TRUE(same_bits(results(*load(golden(of.model), {}, false, of.dtype)), results(*model)));
}

INSTANTIATE_TEST_SUITE_P(
    Models, ANewAdapter,
    testing::Values(Case{"llama", "{r: 4}"}, Case{"llama", "{r: 4, use_dora: true}"},
                    Case{"llama", "{r: 4, use_dora: true}", DTypeSetting::bf16},
                    Case{"llama", "{r: 4, target_modules: [lm_head, embed_tokens, q_proj]}"},
                    Case{"qwen3", "{r: 2, use_rslora: true}", DTypeSetting::bf16},
                    Case{"gpt2", "{r: 2, lora_bias: true, target_modules: [c_attn, c_proj]}"},
                    Case{"gpt2", "{r: 2, target_modules: [c_attn, c_proj, wte, lm_head]}"},
                    Case{"gemma2", "{r: 2, init: gaussian}"}, Case{"phi3", "{}"}, Case{"mixtral", "{}"},
                    Case{"deepseek_v3", "{r: 2}"}, Case{"mamba", "{r: 2}"}, Case{"qwen3_next", "{r: 2}"},
                    Case{"llama", "{r: 2, target_modules: [q_proj], modules_to_save: [norm, lm_head, embed_tokens]}"},
                    Case{"gemma2", "{r: 2, target_modules: [q_proj], modules_to_save: [lm_head]}"},
                    Case{"llama", "{r: 2, use_dora: true, target_modules: [lm_head, embed_tokens]}"},
                    Case{"llama",
                         "{r: 2, target_modules: [q_proj], trainable_token_indices: {embed_tokens: [7, 14], "
                         "lm_head: [7]}}",
                         DTypeSetting::bf16},
                    Case{"gemma2", "{r: 2, target_modules: [q_proj], trainable_token_indices: [7, 14]}"},
                    Case{"qwen3_moe", "{r: 2, target_parameters: [gate_up_proj, down_proj]}", DTypeSetting::bf16},
                    Case{"gpt_oss", "{r: 2, target_parameters: [gate_up_proj, down_proj]}"}));

class AdaptersOf : public testing::TestWithParam<Case> {};

// An adapter that changes the model: off it is the base, saved and read again it has the same bits, merged about the
// same numbers, and unmerged the same bits again.
TEST_P(AdaptersOf, AreSavedReadMergedAndSwitchedOff) {
  const Case& of = GetParam();
  const auto model = with_lora(golden(of.model), of.yaml);
  const std::vector<Tensor> base = results(*load(golden(of.model), {})), on = results(*model);
  EXPECT_GT(distance(base, on), 1e-3);
  const bool replaces = !model->adapters().front()->options().config.modules_to_save.empty();
  EXPECT_TRUE(same_bits(base, results(*model, /*adapters=*/false)));

  const test::TemporaryFolder folder;
  Adapter& adapter = *model->adapters().front();
  save_adapter(*model, adapter, folder / "adapter", "some/model");
  const auto again = load(golden(of.model), {adapter_in(folder / "adapter")});
  EXPECT_TRUE(same_bits(on, results(*again)));
  EXPECT_TRUE(same_bits(base, results(*again, /*adapters=*/false)));

  save_model(*model, folder / "merged");
  EXPECT_LT(distance(on, results(*load(folder / "merged", {}))), replaces ? 1e-4 : 5e-5);
  bool shares = false;
  for (const Adapter::Layer& layer : adapter.layers()) shares |= layer.shared || bool(layer.parts.bias);
  if (shares) return;
  adapter.merge();
  EXPECT_LT(distance(on, results(*model)), 5e-5);
  adapter.unmerge();
  EXPECT_TRUE(same_bits(on, results(*model)));
}

INSTANTIATE_TEST_SUITE_P(
    Models, AdaptersOf,
    testing::Values(Case{"llama", random_lora}, Case{"qwen3", "{r: 3, use_dora: true, init: random}"},
                    Case{"llama", "{r: 2, init: random, target_modules: [lm_head, v_proj]}"},
                    Case{"gemma2", "{r: 2, init: random, target_modules: [lm_head, v_proj]}"},
                    Case{"gpt2", "{r: 2, init: random, target_modules: [c_attn, c_proj, c_fc], lora_bias: true}"},
                    Case{"gpt2", "{r: 2, init: random, target_modules: [c_attn, c_proj], use_dora: true}"},
                    Case{"phi3", random_lora}, Case{"deepseek_v3", random_lora}, Case{"mixtral", random_lora},
                    Case{"falcon_h1", random_lora},
                    Case{"llama", "{r: 2, init: random, use_dora: true, target_modules: [lm_head, embed_tokens]}"},
                    Case{"gemma2", "{r: 2, init: random, use_dora: true, target_modules: [lm_head, q_proj]}"},
                    Case{"mixtral", "{r: 2, init: random, target_parameters: [gate_up_proj, down_proj]}"},
                    Case{"gpt_oss", "{r: 2, init: random, target_parameters: [mlp.experts.gate_up_proj]}"}));

TEST(Adapters, OfAnEmbeddingLeaveTheTiedHeadAloneUntilTheyAreMerged) {
  const auto base = load(golden("gemma2"), {});
  const auto model = with_lora(golden("gemma2"), "{r: 2, init: random, target_modules: [embed_tokens]}");
  const Tensor hidden = at::arange(base->parameters().find("model.embed_tokens.weight")->shape[1]).unsqueeze(0) * 0.01;
  nn::Pass pass = nn::Pass::over({0, 1});
  EXPECT_TRUE(base->head().logits(hidden, pass).equal(model->head().logits(hidden, pass)));
  model->adapters().front()->merge();
  EXPECT_FALSE(base->head().logits(hidden, pass).equal(model->head().logits(hidden, pass)));
}

TEST(Adapters, AreTrainedAloneAndTheRestStaysTheFilesBytes) {
  const auto folder = test::test_data("models/stories260K-hf");
  const auto model = with_lora(folder, "{r: 2, target_modules: [q_proj], bias: all, modules_to_save: [norm]}", true,
                               DTypeSetting::bf16);
  for (const nn::Entry& entry : model->parameters().entries()) {
    const bool learns = entry.adapter || entry.path.find("norm") != std::string::npos;
    EXPECT_EQ(entry.trainable, learns) << entry.path;
    EXPECT_EQ(entry.shard.requires_grad(), learns) << entry.path;
    EXPECT_EQ(entry.shard.scalar_type(), at::kFloat) << entry.path;  // the file's
  }
  const Tensor tokens = tokens_of(*model, 12);
  nn::Pass pass = nn::Pass::over({0, 12});
  const Tensor hidden = model->forward({tokens}, pass).hidden;
  model->head().score(hidden, tokens, pass).logps.mean().backward();
  for (const nn::Entry& entry : model->parameters().entries())
    EXPECT_EQ(entry.shard.grad().defined(), entry.trainable) << entry.path;
}

TEST(Adapters, DropTheSameNumbersWhenALayerIsRecomputedAndInEveryCutOfABatch) {
  const auto model = with_lora(golden("llama"), "{r: 2, init: random, dropout: 0.3, use_dora: true}", true);
  const auto gradients = [&](nn::Checkpointing checkpointing, const std::vector<std::pair<int64_t, int64_t>>& parts) {
    const Tensor tokens = tokens_of(*model, 12);
    for (const auto& [begin, end] : parts) {
      nn::Pass pass = nn::Pass::over({0, end - begin});
      pass.random().training = true;
      pass.random().seed = 3;
      pass.random().first_token = begin;
      pass.activations().checkpointing = checkpointing;
      const Tensor hidden = model->forward({tokens.slice(0, begin, end)}, pass).hidden;
      model->head().score(hidden, tokens.slice(0, begin, end), pass).logps.sum().backward();
    }
    std::vector<Tensor> out;
    for (nn::Entry& entry : model->parameters().entries()) {
      if (!entry.trainable) continue;
      out.push_back(entry.shard.grad().clone());
      entry.shard.mutable_grad() = Tensor();
    }
    return out;
  };
  const auto plain = gradients(nn::Checkpointing::none, {{0, 12}});
  EXPECT_LT(distance(plain, gradients(nn::Checkpointing::nothing_saveable, {{0, 12}})), 1e-6);
  const auto whole = gradients(nn::Checkpointing::none, {{0, 6}, {6, 12}});
  EXPECT_LT(distance(whole, gradients(nn::Checkpointing::nothing_saveable, {{0, 6}, {6, 12}})), 1e-6);
}

// What drops out before the output layer depends on a token's place, not on how many tokens before it have labels.
TEST(Adapters, DropTheSameNumbersBeforeTheHeadWhicheverTokensItReads) {
  const auto model = with_lora(golden("llama"), "{r: 2, init: random, dropout: 0.5, target_modules: [lm_head]}", true);
  const at::NoGradGuard no_gradient;
  const Tensor tokens = tokens_of(*model, 12), rows = at::tensor({1, 4, 5, 11}, at::kLong);
  nn::Pass pass = nn::Pass::over({0, 5, 12});
  pass.random().training = true;
  const Tensor hidden = model->forward({tokens}, pass).hidden;
  const Tensor all = model->head().score(hidden, tokens, pass).logps;
  const auto some = [&] {
    return model->head().score(hidden.index_select(0, rows), tokens.index_select(0, rows), pass).logps;
  };
  pass.stream().head_tokens = rows;
  EXPECT_TRUE(some().equal(all.index_select(0, rows)));
  pass.stream().head_tokens = at::arange(4, at::kLong);
  EXPECT_FALSE(some().equal(all.index_select(0, rows)));
}

TEST(Adapters, HaveTheLayersThatPeftWouldAdapt) {
  const auto modules = [](const std::string& yaml) {
    const auto model = with_lora(golden("llama"), yaml);
    std::vector<std::string> out;
    for (const Adapter::Layer& layer : model->adapters().front()->layers())
      if (!layer.own) out.push_back(layer.module);
    return out;
  };
  EXPECT_EQ(modules("{}").size(), 21u);  // three layers; not lm_head
  EXPECT_EQ(modules("{target_modules: q_proj}").size(), 3u);
  EXPECT_EQ(modules("{target_modules: '.*\\.1\\..*q_proj'}"),
            std::vector<std::string>{"model.layers.1.self_attn.q_proj"});
  EXPECT_EQ(modules("{target_modules: [model.layers.0.mlp.up_proj]}").size(), 1u);
  EXPECT_EQ(modules("{target_modules: [q_proj], layers_to_transform: 1}"),
            std::vector<std::string>{"model.layers.1.self_attn.q_proj"});
  EXPECT_EQ(modules("{target_modules: [q_proj], layers_to_transform: [1], layers_pattern: layers}").size(), 1u);
  EXPECT_EQ(modules("{exclude_modules: [down_proj]}").size(), 18u);
  EXPECT_EQ(modules("{exclude_modules: '.*mlp.*'}").size(), 12u);
  EXPECT_EQ(modules("{target_modules: [q_proj, v_proj], modules_to_save: [q_proj]}").size(), 3u);
}

TEST(Adapters, HaveRanksAndScalesOfTheirOwn) {
  const LoraConfig config = lora(
      "{r: 8, alpha: 4, use_rslora: true, rank_pattern: {'layers.1.*q_proj': 2, q_proj: 4}, alpha_pattern: {v_proj: "
      "6}}");
  EXPECT_EQ(config.rank_of("model.layers.1.self_attn.q_proj"), 2);
  EXPECT_EQ(config.rank_of("model.layers.0.self_attn.q_proj"), 4);
  EXPECT_EQ(config.rank_of("model.layers.0.self_attn.v_proj"), 8);
  EXPECT_DOUBLE_EQ(config.scale_of("model.layers.0.self_attn.v_proj"), 6 / std::sqrt(8.0));
  EXPECT_DOUBLE_EQ(config.scale_of("model.layers.0.self_attn.k_proj"), 4 / std::sqrt(8.0));
}

TEST(Adapters, AreWrittenWithTheFieldsThatPeftWrites) {
  const fs::path recorded = test::test_data("trl/peft/lora_qv_r4_a8");
  const auto model = load(test::test_data("models/stories260K-hf"), {adapter_in(recorded)});
  const test::TemporaryFolder folder;
  save_adapter(*model, *model->adapters().front(), folder.path(), "models/stories260K-hf");
  Value theirs = parse_file(recorded / "adapter_config.json"), ours = parse_file(folder / "adapter_config.json");
  std::ranges::sort(theirs.find("target_modules")->items, {}, &Value::scalar);
  std::ranges::sort(ours.find("target_modules")->items, {}, &Value::scalar);
  EXPECT_EQ(to_json(ours, 1), to_json(theirs, 1));
  const auto file = weights::SafetensorsFile::open(folder / "adapter_model.safetensors");
  const auto other = weights::SafetensorsFile::open(recorded / "adapter_model.safetensors");
  ASSERT_EQ(file->names(), other->names());
  for (const std::string& name : file->names()) {
    EXPECT_EQ(file->at(name).shape, other->at(name).shape) << name;
    EXPECT_TRUE(std::ranges::equal(file->at(name).bytes, other->at(name).bytes)) << name;
  }
}

class FolderOfAnAdapter : public testing::Test {
 protected:
  FolderOfAnAdapter() {
    for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
      test::write_file(folder_ / name, test::read_file(test::test_data("trl/peft/lora_qv_r4_a8") / name));
  }
  void set(const std::string& name, const std::string& value) {
    Value config = parse_file(folder_ / "adapter_config.json");
    config.set(name, parse_json(value));
    test::write_file(folder_ / "adapter_config.json", to_json(config));
  }
  std::string refused(const fs::path& base = test::test_data("models/stories260K-hf")) {
    return test::replaced(test::refusal([&] { load(base, {adapter_in(folder_.path())}); }), folder_.path().string(),
                          "A");
  }
  test::TemporaryFolder folder_;
};

TEST_F(FolderOfAnAdapter, OfAnEarlierOrLaterVersionIsRead) {
  test::write_file(folder_ / "adapter_config.json",
                   R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]})");
  const auto early = results(*load(test::test_data("models/stories260K-hf"), {adapter_in(folder_.path())}));
  set("a_field_of_tomorrow", "null");
  set("runtime_config", R"({"ephemeral_gpu_offload": false})");
  EXPECT_TRUE(same_bits(early, results(*load(test::test_data("models/stories260K-hf"), {adapter_in(folder_.path())}))));
}

TEST_F(FolderOfAnAdapter, SaysWhatIsWrongWithItsConfiguration) {
  set("a_field_of_tomorrow", "7");
  EXPECT_EQ(refused(),
            "A/adapter_config.json: a_field_of_tomorrow: 7 is a field that is not known here\n"
            "    it comes from a version of PEFT after 0.21.2; save the adapter without it");
  set("a_field_of_tomorrow", "null");
  set("use_qalora", "true");
  EXPECT_EQ(refused(), "A/adapter_config.json: use_qalora: true is not built yet\n    built: false");
  set("use_qalora", "false");
  set("init_lora_weights", "\"corda\"");
  EXPECT_EQ(refused(),
            "A/adapter_config.json: init_lora_weights: corda changes the base's weights, which is not built yet\n"
            "    convert the adapter with PEFT: save_pretrained(..., path_initial_model_for_weight_conversion=...)");
  set("init_lora_weights", "true");
  set("lora_alpha", "0");
  EXPECT_EQ(refused(),
            "A/adapter_config.json:1:476: alpha: 0 is out of range\n    expected a number above 0 (default 32.0)\n"
            "1 problem in A/adapter_config.json; nothing was run.");
  set("lora_alpha", "8");
  set("peft_type", "\"VERA\"");
  EXPECT_EQ(refused(), "A/adapter_config.json: peft_type VERA is not built yet\n    built: LORA");
  fs::remove(folder_ / "adapter_config.json");
  EXPECT_EQ(refused(), "A: has no adapter_config.json\n    give a folder that PEFT or easydel saved an adapter in");
}

TEST_F(FolderOfAnAdapter, SaysWhichTensorsDoNotFit) {
  const std::string other = "\n    the adapter was made for another model or with another configuration";
  EXPECT_EQ(
      refused(golden("llama")),
      "A/adapter_model.safetensors: base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight is [4, 64]; the "
      "model needs [4, 32], and 11 more" +
          other);
  set("target_modules", R"(["q_proj"])");
  EXPECT_EQ(
      refused(),
      "A/adapter_model.safetensors: has base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight and 9 more "
      "tensors, which the model has no place for" +
          other);
  set("target_modules", R"(["q_proj", "v_proj", "k_proj"])");
  EXPECT_EQ(refused(),
            "A/adapter_model.safetensors: has no base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight, and 9 "
            "more" +
                other);
  set("target_modules", R"(["Wqkv"])");
  EXPECT_EQ(refused(),
            "A: finds no layer of this model\n    its layers are called down_proj, embed_tokens, gate_proj, k_proj, "
            "lm_head, o_proj, q_proj, up_proj, v_proj");
  fs::remove(folder_ / "adapter_model.safetensors");
  EXPECT_EQ(refused(),
            "A: has no adapter_model.safetensors\n    give a folder that PEFT or easydel saved an adapter in");
}

TEST_F(FolderOfAnAdapter, WithNaNIsRefused) {
  std::string bytes = test::read_file(folder_ / "adapter_model.safetensors");
  const float nan = std::nanf("");
  std::memcpy(bytes.data() + bytes.size() - 4, &nan, 4);
  test::write_file(folder_ / "adapter_model.safetensors", bytes);
  EXPECT_EQ(
      refused(),
      "A/adapter_model.safetensors: base_model.model.model.layers.4.self_attn.v_proj.lora_B.weight holds values that "
      "are not finite (NaN or infinity)\n    the adapter is broken; save or fetch it again");
}

TEST(Adapters, OfARankAboveTheSmallerSideAreWarnedOf) {
  testing::internal::CaptureStderr();
  with_lora(golden("llama"), "{r: 33, target_modules: [layers.0.self_attn.q_proj]}");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: lora: r is 33, and model.layers.0.self_attn.q_proj is only 32 x 32; a rank above the smaller "
            "side learns nothing more\n");
  testing::internal::CaptureStderr();
  with_lora(golden("llama"), "{r: 32, target_modules: [layers.0.self_attn.q_proj]}");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Adapters, ThatFindNothingSayWhatWould) {
  const auto refused = [](const std::string& yaml) { return test::refusal([&] { with_lora(golden("llama"), yaml); }); };
  EXPECT_EQ(refused("{target_modules: [query]}"),
            "lora.target_modules: finds no layer of this model\n    its layers are called down_proj, embed_tokens, "
            "gate_proj, k_proj, lm_head, o_proj, q_proj, up_proj, v_proj");
  EXPECT_EQ(refused("{rank_pattern: {k_proj: 2, query: 3}}"),
            "lora.rank_pattern: 'query' finds no adapted layer\n    give the end of a layer's path, such as "
            "model.layers.0.mlp.down_proj");
  EXPECT_EQ(refused("{lora_bias: true, target_modules: [lm_head]}"),
            "lora: lora_bias on an embedding or an output layer is not built yet (lm_head)\n    leave the layer out of "
            "target_modules, or train plain LoRA");
  EXPECT_EQ(
      test::refusal([] { lora("{r: 0}"); }),
      "lora:1:5: r: 0 is out of range\n    expected an integer of at least 1 (default 16)\n1 problem in lora; nothing "
      "was run.");
}

// Half of the model's weights are frozen: they have no masters, no gradients and the file's own dtype.
TEST(FrozenParameters, StayAsTheFileHoldsThem) {
  LoadOptions options;
  options.training = true;
  options.dtype = DTypeSetting::fp32;
  options.trainable = nn::Trainable::except("layers.0");
  const test::TemporaryFolder folder;
  save_model(*load(golden("llama"), {}), folder / "bf16", DTypeSetting::bf16);
  const auto model = load_model(folder / "bf16", options);
  for (const nn::Entry& entry : model->parameters().entries()) {
    const bool frozen = entry.path.find("layers.0") != std::string::npos;
    const bool product = nn::is_linear(entry) || entry.role == nn::Role::embedding;
    EXPECT_EQ(entry.shard.scalar_type(), frozen && product ? at::kBFloat16 : at::kFloat) << entry.path;
  }
}

}  // namespace
}  // namespace easydel::models
