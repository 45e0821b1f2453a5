// Training adapters: what a checkpoint holds, and a run that goes on from one.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <csignal>

#include "easydel/base/files.h"
#include "easydel/models/adapter.h"
#include "easydel/tensor/mapped.h"
#include "easydel/train/state_files.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;
using test::small_run;
using test::TemporaryFolder;

struct SignalAfter : Watcher {
  explicit SignalAfter(int64_t step) : step(step) {}
  void stepped(const StepReport& report) override {
    if (report.step == step) raise(SIGTERM);
  }
  int64_t step;
};

TrainerParts lora_run(const fs::path& folder, const std::string& lora, const std::string& trainer) {
  TrainerParts parts = small_run(folder, trainer);
  models::AdapterOptions adapter;
  adapter.seed = 5;
  config::read(parse_yaml(lora), adapter.config, "lora").throw_if_any();
  parts.load.adapters = {adapter};
  parts.model = models::load_model(test::test_data("models/stories260K-hf"), parts.load);
  parts.model_name = "models/stories260K-hf";
  return parts;
}

fs::path run(TrainerParts parts, int64_t signal_after = 0) {
  SignalAfter watcher(signal_after);
  parts.watcher = &watcher;
  Trainer trainer(std::move(parts));
  return trainer.run().checkpoint;
}

std::vector<std::string> files_of(const fs::path& folder) {
  std::vector<std::string> out;
  for (const fs::path& path : files::list_files_below(folder)) out.push_back(path.string());
  return out;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

class TrainedAdapter : public testing::TestWithParam<const char*> {};

TEST_P(TrainedAdapter, IsTheSameToTheBitAfterAStop) {
  const test::LogLines log;
  const TemporaryFolder whole, stopped;
  const std::string keys = "{max_training_steps: 6, save_steps: 4}";
  const fs::path last = run(lora_run(whole.path(), GetParam(), keys));
  run(lora_run(stopped.path(), GetParam(), keys), 3);
  const fs::path again = run(lora_run(stopped.path(), GetParam(), keys));
  EXPECT_EQ(last.filename(), again.filename());
  for (const char* name : {"adapter/adapter_model.safetensors", "optimizer/optimizer-00001-of-00001.safetensors",
                           "model.safetensors", "adapter/adapter_config.json"})
    EXPECT_EQ(test::read_file(last / name), test::read_file(again / name)) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, TrainedAdapter,
    testing::Values("{r: 4, dropout: 0.2}", "{r: 2, dropout: 0.1, use_dora: true, lora_plus_ratio: 8}",
                    "{r: 2, target_modules: [q_proj, embed_tokens, lm_head], modules_to_save: [norm]}"));

Tensor logits_of(const models::Model& model) {
  const at::NoGradGuard no_gradient;
  const Tensor tokens = at::arange(3, 40, at::kLong);
  nn::Pass pass = nn::Pass::over({0, tokens.size(0)});
  return model.head().logits(model.forward({tokens}, pass).hidden, pass);
}

TEST(AdapterCheckpoints, HoldTheAdapterAloneAndTheMergedModelAtTheEnd) {
  const test::LogLines log;
  const TemporaryFolder folder;
  const std::string keys = "{max_training_steps: 4, save_steps: 2}";
  const fs::path last = run(lora_run(folder.path(), "{r: 2}", keys));
  const auto early = files_of(last.parent_path() / "run-2"), late = files_of(last);
  for (const char* name :
       {"adapter/adapter_config.json", "adapter/adapter_model.safetensors", "adapter/README.md",
        "adapter/tokenizer.json", "optimizer/optimizer-00001-of-00001.safetensors", "state.json", "manifest.json"}) {
    EXPECT_TRUE(holds(early, name)) << name;
    EXPECT_TRUE(holds(late, name)) << name;
  }
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    EXPECT_FALSE(holds(early, name)) << name;
    EXPECT_TRUE(holds(late, name)) << name;
  }
  // The merged model has the adapter's logits.
  const auto base = test::test_data("models/stories260K-hf");
  models::LoadOptions load;
  load.dtype = models::DTypeSetting::fp32;
  const auto merged = models::load_model(last, load), plain = models::load_model(base, load);
  load.adapters = {models::adapter_in(last / "adapter")};
  const auto adapted = models::load_model(base, load);
  EXPECT_LT((logits_of(*merged) - logits_of(*adapted)).abs().max().item<float>(), 1e-4f);
  EXPECT_GT((logits_of(*plain) - logits_of(*adapted)).abs().max().item<float>(), 1e-2f);
}

TEST(AdapterCheckpoints, AreNeverMergedIfThatIsNotAsked) {
  const test::LogLines log;
  const TemporaryFolder folder;
  const fs::path last =
      run(lora_run(folder.path(), "{r: 2}", "{max_training_steps: 2, merge_lora_before_save: false}"));
  EXPECT_FALSE(fs::exists(last / "model.safetensors"));
  EXPECT_TRUE(fs::exists(last / "adapter/adapter_model.safetensors"));
  EXPECT_EQ(run(lora_run(folder.path(), "{r: 2}", "{max_training_steps: 2, merge_lora_before_save: false}")), last);
}

// QLoRA: the weights of products are codes, which have no values, gradients or masters.
TEST(AdapterCheckpoints, OverCodesEndWithTheDequantizedWeightsMerged) {
  const test::LogLines log;
  const auto codes = [](const fs::path& folder, int64_t signal_after) {
    TrainerParts parts = small_run(folder, "{max_training_steps: 6, save_steps: 4}");
    models::AdapterOptions adapter;
    parts.load.adapters = {adapter};
    parts.load.quantization = nn::Quantization{.format = quant::format_of({.method = "nf4"}, "quantization")};
    parts.model = models::load_model(test::test_data("models/stories260K-hf"), parts.load);
    parts.checkpointing = nn::Checkpointing::nothing_saveable;
    int64_t coded = 0;
    for (const nn::Entry& entry : parts.model->parameters().entries()) coded += !entry.shard.defined();
    EXPECT_EQ(coded, 35);
    return run(std::move(parts), signal_after);
  };
  const TemporaryFolder whole, stopped;
  const fs::path last = codes(whole.path(), 0);
  codes(stopped.path(), 3);
  const fs::path again = codes(stopped.path(), 0);
  for (const char* const file : {"adapter/adapter_model.safetensors", "model.safetensors", "config.json"})
    EXPECT_EQ(test::read_file(last / file), test::read_file(again / file)) << file;
  EXPECT_FALSE(fs::exists(last.parent_path() / "run-4/model.safetensors"));
  models::LoadOptions load;
  const auto merged = models::load_model(last, load);
  for (const nn::Entry& entry : merged->parameters().entries()) EXPECT_TRUE(entry.shard.defined()) << entry.path;
  load.adapters = {models::adapter_in(last / "adapter")};
  load.quantization = nn::Quantization{.format = quant::format_of({.method = "nf4"}, "quantization")};
  const auto trained = models::load_model(test::test_data("models/stories260K-hf"), load);
  EXPECT_LT((logits_of(*merged) - logits_of(*trained)).abs().max().item<float>(), 1e-4f);
  const std::vector<double> losses = test::metric(whole / "out/small", "loss");
  EXPECT_LT(losses.back(), losses.front());
}

// lora.merge_base and lora.merge_to_codes of a run.
TEST(AdapterCheckpoints, OverCodesAreMergedAsTheSectionAsks) {
  const test::LogLines log;
  const TemporaryFolder folder;
  const auto base = test::test_data("models/stories260K-hf");
  models::LoadOptions load;
  load.dtype = models::DTypeSetting::fp32;
  const auto ends = [&](const std::string& name, const std::string& lora) {
    TrainerParts parts = small_run(folder / name, "{max_training_steps: 2, learning_rate: 0.05}");
    parts.load.dtype = load.dtype;
    parts.load.adapters.emplace_back();
    config::read(parse_yaml(lora), parts.load.adapters[0].config, "lora").throw_if_any();
    parts.load.quantization = nn::Quantization{.format = quant::format_of({.method = "nf4"}, "quantization")};
    parts.model = models::load_model(base, parts.load);
    return run(std::move(parts));
  };
  const auto differ = [&](const models::Model& one, const models::Model& other) {
    return (logits_of(one) - logits_of(other)).abs().max().item<float>();
  };
  const fs::path original = ends("original", "{r: 2, merge_base: original}"),
                 codes = ends("codes", "{r: 2, merge_to_codes: true}");
  const auto of_original = models::load_model(original, load), of_codes = models::load_model(codes, load);
  load.adapters = {models::adapter_in(original / "adapter")};
  EXPECT_LT(differ(*of_original, *models::load_model(base, load)), 1e-4f);
  load.quantization = nn::Quantization{.format = quant::format_of({.method = "nf4"}, "quantization")};
  EXPECT_GT(differ(*of_original, *models::load_model(base, load)), 1e-2f);
  load.adapters = {models::adapter_in(codes / "adapter")};
  const auto trained = models::load_model(base, load);
  EXPECT_GT(differ(*of_codes, *trained), 1e-3f);
  trained->adapters().front()->merge(models::Adapter::MergeInto::codes);
  for (const nn::Entry& entry : of_codes->parameters().entries()) {
    const nn::Entry& own = *trained->parameters().find(entry.path);
    EXPECT_EQ(entry.shard.defined(), own.shard.defined()) << entry.path;
    EXPECT_TRUE(nn::Parameter(of_codes->parameters().find(entry.path))
                    .value()
                    .equal(nn::Parameter(trained->parameters().find(entry.path)).value()))
        << entry.path;
  }
}

TEST(AdapterCheckpoints, ThatCannotBeMergedIntoCodesAreRefusedBeforeTheRun) {
  const test::LogLines log;
  const TemporaryFolder folder;
  EXPECT_EQ(test::refusal([&] { run(lora_run(folder.path(), "{r: 2, merge_to_codes: true}", "{}")); }),
            "lora.merge_to_codes: the model has no weights in codes, so an adapter cannot be merged into codes\n"
            "    leave it out, or give the format of its codes in quantization.model");
}

TEST(AdapterCheckpoints, OfABiasThatCannotBeMergedAreRefusedBeforeTheRun) {
  const test::LogLines log;
  const TemporaryFolder folder;
  EXPECT_EQ(
      test::refusal([&] { run(lora_run(folder.path(), "{r: 2, lora_bias: true, target_modules: [q_proj]}", "{}")); }),
      "trainer.merge_lora_before_save: lora_bias cannot be merged: model.layers.0.self_attn.q_proj has no bias\n"
      "    set merge_lora_before_save: false, or lora_bias: false");
}

// LoRA+: after one step of a rule whose updates do not depend on the size of gradients, B moved `ratio` times as far.
TEST(LoraPlus, MovesBFurther) {
  const test::LogLines log;
  const auto moved = [&](const std::string& lora) {
    const TemporaryFolder folder;
    const fs::path last = run(lora_run(folder.path(), lora, "{max_training_steps: 1, weight_decay: 0}"));
    const auto file = weights::SafetensorsFile::open(last / "adapter/adapter_model.safetensors");
    float most = 0;
    for (const std::string& name : file->names())
      if (name.ends_with("lora_B.weight"))
        most = std::max(most, tensor::from_view(file->at(name)).abs().max().item<float>());
    return most;
  };
  EXPECT_NEAR(moved("{r: 2, lora_plus_ratio: 16}") / moved("{r: 2}"), 16.0f, 1e-3f);
}

}  // namespace
}  // namespace easydel::train
