// Every example runs unchanged, except that it is shorter and writes to another folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include "easydel/base/document.h"
#include "easydel/elarge/harness_process.h"
#include "support/data.h"

namespace easydel::test {
namespace {

struct Example {
  TemporaryFolder folder;
  Ran run(const std::string& name, std::vector<std::string> settings, std::vector<std::string> before = {}) {
    std::vector<std::string> arguments = std::move(before);
    arguments.insert(arguments.end(), {"elarge", "examples/" + name});
    settings.push_back("trainer.save_directory=" + (folder / "out").string());
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    return run_program(arguments, {.folder = source_root()});
  }
  // metrics.jsonl of the run.
  std::vector<Value> records() {
    std::vector<Value> all;
    if (!fs::exists(folder / "out")) return all;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "out")) {
      if (entry.path().filename() != "metrics.jsonl") continue;
      std::istringstream lines(read_file(entry.path()));
      for (std::string line; std::getline(lines, line);) all.push_back(parse_json(line));
    }
    return all;
  }
  // The values of one metric, in the order of the records that have it.
  std::vector<double> values(const std::string& name) {
    std::vector<double> all;
    for (const Value& record : records())
      if (const Value* value = record.find(name)) all.push_back(value->as_double().value());
    return all;
  }
  // The last checkpoint of the run.
  fs::path checkpoint() {
    fs::path last;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "out"))
      if (entry.is_directory() && entry.path().filename().string().starts_with("run-")) last = entry.path();
    return last;
  }
};

// A script of commands, by this build's program.
Ran run_script(const std::string& name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "examples/" + name);
  arguments.push_back(program().string());
  arguments.insert(arguments.begin(), "sh");
  return test::run(arguments, {.folder = source_root()});
}

TEST(Examples, QuickstartLowersTheHeldOutLossSavesAndWrites) {
  Example example;
  const Ran ran = example.run("01_quickstart.yaml", {"trainer.max_training_steps=12", "trainer.evaluation_steps=12"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<double> losses = example.values("eval_loss");
  ASSERT_EQ(losses.size(), 2u);  // before the first step, after the last
  EXPECT_GT(losses[0], 3.5);
  EXPECT_LT(losses[1], losses[0] - 0.7);
  // A paragraph before and one after, from other weights.
  const size_t first = ran.out.find("The old prince"), second = ran.out.rfind("The old prince");
  ASSERT_NE(first, std::string::npos) << ran.out;
  EXPECT_NE(first, second) << ran.out;
  // The saved folder is a model folder.
  const fs::path saved = example.checkpoint();
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
    EXPECT_TRUE(fs::exists(saved / name)) << name;
  const Ran again = run_program({"generate", saved.string(), "--prompt", "The old prince", "--max-new-tokens", "4"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.out, "");
}

TEST(Examples, AnAdapterLearnsIsMergedAndContinuesPrompts) {
  Example example;
  const Ran ran = example.run("10_lora.yaml", {"trainer.max_training_steps=12", "trainer.evaluation_steps=12"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<double> losses = example.values("eval_loss");
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_LT(losses[1], losses[0] - 0.5);
  EXPECT_NE(ran.out.find("The old prince"), std::string::npos) << ran.out;
  const fs::path saved = example.checkpoint(), adapter = saved / "adapter";
  const std::string base = test_data("models/stories260K-hf").string();
  const auto continued = [&](std::vector<std::string> model) {
    model.insert(model.begin(), "generate");
    model.insert(model.end(), {"--prompt", "The old prince", "--max-new-tokens", "12", "--dtype", "fp32"});
    const Ran done = run_program(model, {.folder = source_root()});
    EXPECT_EQ(done.status, 0) << done.err;
    return done.out;
  };
  const std::string with = continued({base, "--adapter", adapter.string()});
  EXPECT_NE(with, continued({base}));
  EXPECT_EQ(with, continued({adapter.string()}));  // which names its model
  EXPECT_EQ(with, continued({saved.string()}));    // which holds the merged model
  const Ran merged =
      run_program({"merge", base, "--adapter", adapter.string(), "--out", (example.folder / "merged").string()});
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(with, continued({(example.folder / "merged").string()}));
  EXPECT_EQ(read_file(saved / "model.safetensors"), read_file(example.folder / "merged/model.safetensors"));
  // Half of it is another model, and an existing folder is never overwritten.
  const Ran half =
      run_program({"merge", base, "--adapter", adapter.string() + ":0.5", "--out", (example.folder / "half").string()});
  EXPECT_EQ(half.status, 0) << half.err;
  EXPECT_NE(read_file(saved / "model.safetensors"), read_file(example.folder / "half/model.safetensors"));
  const Ran again =
      run_program({"merge", base, "--adapter", adapter.string(), "--out", (example.folder / "merged").string()});
  EXPECT_EQ(again.status, 2);
  EXPECT_EQ(replaced(again.err, example.folder.path().string(), "DIR"),
            "--out: 'DIR/merged' exists and is not empty\n    give a new folder\n");
  const Ran word = run_program(
      {"merge", base, "--adapter", adapter.string() + ":much", "--out", (example.folder / "none").string()});
  EXPECT_EQ(replaced(word.err, example.folder.path().string(), "DIR"),
            replaced("--adapter: 'much' is not a number (" + adapter.string() +
                         ":much)\n    write FOLDER, or FOLDER:0.5 to add half "
                         "of it\n",
                     example.folder.path().string(), "DIR"));
  EXPECT_FALSE(fs::exists(example.folder / "none"));
}

TEST(Examples, NewTokensLearnAndAreSavedWithTheAdapter) {
  Example example;
  const Ran ran =
      example.run("10_lora.yaml", {"trainer.max_training_steps=2", "trainer.do_eval=false",
                                   "lora.added_tokens=[<said>, </said>]", "actions=[{validate: null}, {train: null}]"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("lora.added_tokens: 2 new tokens, ids from 512 to 513"), std::string::npos) << ran.err;
  const fs::path saved = example.checkpoint(), adapter = saved / "adapter", merged = example.folder / "merged";
  const std::string base = test_data("models/stories260K-hf").string();
  const Ran done = run_program({"merge", base, "--adapter", adapter.string(), "--out", merged.string()});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(parse_json(read_file(merged / "config.json")).find("vocab_size")->scalar, "514");
  std::vector<std::string> ids, texts;
  for (const std::string& folder : {adapter.string(), saved.string(), merged.string()}) {
    const Ran tokens = run_program({"tokenize", folder, "<said>Yes</said>"});
    EXPECT_EQ(tokens.status, 0) << tokens.err;
    ids.push_back(tokens.out);
    const Ran text =
        run_program({"generate", folder, "--prompt", "<said>The old", "--max-new-tokens", "8", "--dtype", "fp32"},
                    {.folder = source_root()});
    EXPECT_EQ(text.status, 0) << text.err;
    texts.push_back(text.out);
  }
  EXPECT_NE(ids[0].find("512"), std::string::npos) << ids[0];
  EXPECT_NE(ids[0].find("513"), std::string::npos) << ids[0];
  EXPECT_EQ(ids, std::vector(3, ids[0]));
  EXPECT_EQ(texts, std::vector(3, texts[0]));
}

// The reference is the model without its adapter, so there is no margin before the first step.
TEST(Examples, PreferencesTrainAnAdapter) {
  Example example;
  const Ran ran =
      example.run("03_dpo.yaml", {"lora={r: 8, alpha: 16}", "reference_model=null", "trainer.report_steps=1",
                                  "trainer.max_training_steps=4", "trainer.learning_rate=0.005"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<double> margins = example.values("rewards/margins");
  ASSERT_EQ(margins.size(), 4u);
  EXPECT_NEAR(margins.front(), 0, 1e-5);
  EXPECT_GT(margins.back(), 0.01);
}

TEST(Examples, AnAdapterOfPreferencesNeedsNoSecondModel) {
  Example example;
  const Ran ran = example.run("12_dpo_lora.yaml", {"trainer.report_steps=1"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<double> margins = example.values("rewards/margins");
  ASSERT_EQ(margins.size(), 4u);
  EXPECT_NEAR(margins.front(), 0, 1e-5);
  EXPECT_GT(margins.back(), 1);
}

TEST(Examples, AnAdapterLearnsOverCodesIsMergedAndContinuesPrompts) {
  Example example;
  const Ran ran = example.run("11_qlora.yaml", {"trainer.max_training_steps=12", "trainer.evaluation_steps=12"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("lora: {r: 16, alpha: 32, target_modules: all-linear}"), std::string::npos) << ran.err;
  const std::vector<double> losses = example.values("eval_loss");
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_LT(losses[1], losses[0] - 0.5);
  const std::string adapter = (example.checkpoint() / "adapter").string(), out = (example.folder / "merged").string();
  const Ran merged = run_script("13_merge.sh", {adapter, out});
  ASSERT_EQ(merged.status, 0) << merged.err;
  // A text of each, from other weights.
  const size_t first = merged.out.find("The old prince"), second = merged.out.rfind("The old prince");
  ASSERT_NE(first, std::string::npos) << merged.out;
  EXPECT_NE(first, second) << merged.out;
  EXPECT_NE(read_file(out + "/whole/model.safetensors"), read_file(out + "/half/model.safetensors"));
}

TEST(Examples, CodesOfThreeLibrariesAreWrittenAndContinueTexts) {
  const TemporaryFolder folder;
  const Ran ran = run_script("14_quantize.sh", {folder.path().string()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  size_t texts = 0;
  for (size_t at = 0; (at = ran.out.find("Once upon a time, there was", at)) != std::string::npos; ++at) ++texts;
  EXPECT_EQ(texts, 3u) << ran.out;
  const auto method = [&](const std::string& name) {
    const Value config = parse_json(read_file(folder / (name + "/config.json")));
    return config.find("quantization_config")->find("quant_method")->scalar;
  };
  EXPECT_EQ(method("nf4"), "bitsandbytes");
  EXPECT_EQ(method("int8"), "compressed-tensors");
}

TEST(Examples, ChatsAreLearnedFromTheAssistantsWordsAlone) {
  Example example;
  const Ran ran = example.run("02_sft_chat.yaml", {"trainer.report_steps=1"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<double> losses = example.values("loss");
  ASSERT_GE(losses.size(), 10u);
  EXPECT_LT(losses.back(), losses.front());
}

TEST(Examples, TheEngineWritesWhatThePlainLoopWrites) {
  Example example;
  const std::string by_engine = (example.folder / "engine.jsonl").string();
  const std::string by_loop = (example.folder / "generator.jsonl").string();
  const Ran ran =
      example.run("05_engine.yaml", {"trainer.max_training_steps=4", "actions[1].generate.output_path=" + by_engine,
                                     "actions[2].generate.output_path=" + by_loop});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::string lines = read_file(by_engine);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 64);
  EXPECT_EQ(lines, read_file(by_loop));
  EXPECT_NE(ran.err.find("tokens/s"), std::string::npos) << ran.err;
}

TEST(Examples, PreferencesGrowAMarginBetweenTheEndings) {
  Example example;
  const Ran ran = example.run("03_dpo.yaml", {"trainer.report_steps=1"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<double> margins = example.values("rewards/margins"), losses = example.values("loss");
  ASSERT_FALSE(margins.empty());
  EXPECT_NEAR(losses.front(), 0.6931, 1e-3);  // policy and reference are equal before the first step
  EXPECT_NEAR(margins.front(), 0, 1e-4);
  EXPECT_GT(margins.back(), 0.05);
}

TEST(Examples, MarkedAnswersMoveApart) {
  Example example;
  const Ran ran = example.run("15_kto.yaml", {"trainer.report_steps=1"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<double> losses = example.values("loss"), margins = example.values("rewards/margins");
  ASSERT_GE(losses.size(), 16u);
  EXPECT_NEAR(losses.front(), 0.5, 1e-3);  // model and reference are equal before the first step
  EXPECT_GT(margins.back(), 0.05);
  EXPECT_LT(losses.back(), losses.front());
}

TEST(Examples, PartsOfAStoryMoveNearEachOther) {
  Example example;
  const Ran ran = example.run("20_embedding.yaml", {"trainer.report_steps=1"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<double> held_out = example.values("eval_contrastive_accuracy");
  ASSERT_GE(held_out.size(), 2u);
  // Of 48 stories. Over six seeds the loss falls by 0.66 to 0.75, and 5 or 6 more parts are found.
  EXPECT_GT(held_out.back(), held_out.front() + 2.5 / 48);
  EXPECT_LT(example.values("eval_loss").back(), example.values("eval_loss").front() - 0.4);
  const Value pooling = parse_json(read_file(example.checkpoint() / "1_Pooling/config.json"));
  EXPECT_TRUE(*pooling.find("pooling_mode_mean_tokens")->as_bool());
}

TEST(Examples, ARewardModelLearnsToPreferAndItsHeadIsSaved) {
  Example example;
  const Ran ran = example.run("16_reward.yaml", {"trainer.report_steps=1"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("no score.weight; it starts from random values"), std::string::npos) << ran.err;
  const std::vector<double> accuracies = example.values("accuracy");
  ASSERT_GE(accuracies.size(), 16u);
  EXPECT_GT(accuracies.back(), 0.8);
  const Value config = parse_json(read_file(example.checkpoint() / "config.json"));
  EXPECT_EQ(config.find("architectures")->items[0].scalar, "LlamaForSequenceClassification");
  EXPECT_EQ(config.find("id2label")->entries.size(), 1u);
}

// The head is trained in full beside the adapter, and is part of what is saved.
TEST(Examples, ARewardModelWithAnAdapterTrainsItsHead) {
  Example example;
  const Ran ran = example.run("16_reward.yaml", {"trainer.report_steps=1", "lora={r: 8, alpha: 16}",
                                                 "trainer.max_training_steps=8", "trainer.learning_rate=0.005"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Value adapter = parse_json(read_file(example.checkpoint() / "adapter/adapter_config.json"));
  EXPECT_EQ(adapter.find("modules_to_save")->items.at(0).scalar, "score");
  EXPECT_LT(example.values("loss").back(), example.values("loss").front());
}

TEST(Examples, DistillationTeachesMoreThanTheTextsAlone) {
  Example taught, alone;
  const Ran ran = taught.run("19_distillation.yaml", {});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Ran plain = alone.run("19_distillation.yaml", {"trainer.trainer_type=sft"});
  ASSERT_EQ(plain.status, 0) << plain.err;
  const std::vector<double> a = taught.values("eval_cross_entropy"), b = alone.values("eval_loss");
  ASSERT_FALSE(a.empty());
  ASSERT_EQ(a.size(), b.size());
  EXPECT_LT(a.back(), b.back() - 0.05);  // 0.08 with this order of the rows, up to 0.17 with others
}

// By how much the mean of the last five of 20 steps is above that of the first five.
double rise_of(const std::vector<double>& rewards) {
  EXPECT_EQ(rewards.size(), 20u);
  if (rewards.size() != 20) return 0;
  const auto mean = [](auto begin) { return std::accumulate(begin, begin + 5, 0.0) / 5; };
  return mean(rewards.end() - 5) - mean(rewards.begin());
}

TEST(Examples, CompletionsBecomeWhatAProgramLikes) {
  Example example;
  const Ran ran = example.run("18_grpo_program.yaml", {});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_GT(rise_of(example.values("reward")), 0.05);
}

TEST(Examples, CompletionsBecomeWhatARewardModelLikes) {
  Example preferences, example;
  const Ran first = preferences.run("16_reward.yaml", {});
  ASSERT_EQ(first.status, 0) << first.err;
  const Ran ran =
      example.run("17_grpo_reward_model.yaml", {"reward_model.name_or_path=" + preferences.checkpoint().string()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_GT(rise_of(example.values("reward")), 0.15);
  const Value document = parse_yaml(read_file(source_root() / "examples/17_grpo_reward_model.yaml"));
  EXPECT_EQ(fs::path(document.find("reward_model")->find("name_or_path")->scalar),
            "runs/reward" / fs::relative(preferences.checkpoint(), preferences.folder / "out"));
}

TEST(Examples, TalkingWithAProgramRaisesItsRewards) {
  Example example;
  const Ran ran = example.run("21_episodes.yaml", {});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_GT(rise_of(example.values("reward")), 0.3);
}

// Episodes call the tool: they have more than one turn.
TEST(Examples, ATaughtModelAsksTheCalculator) {
  Example taught, episodes;
  const Ran calls = taught.run("22_tool_calls.yaml", {});
  ASSERT_EQ(calls.status, 0) << calls.err;
  const Ran ran = episodes.run("23_calculator.yaml", {"model.name_or_path=" + taught.checkpoint().string()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_GT(rise_of(episodes.values("reward")), 0.3);
  std::string rollouts;
  for (const auto& entry : fs::recursive_directory_iterator(episodes.folder / "out"))
    if (entry.path().filename() == "rollouts.jsonl") rollouts = read_file(entry.path());
  EXPECT_NE(rollouts.find("<tool_response>"), std::string::npos);
  const Value document = parse_yaml(read_file(source_root() / "examples/23_calculator.yaml"));
  EXPECT_EQ(fs::path(document.find("model")->find("name_or_path")->scalar),
            "runs/tool_calls" / fs::relative(taught.checkpoint(), taught.folder / "out"));
}

TEST(Examples, TwoRanksLearnWhatOneRankLearns) {
  Example two, one;
  const std::vector<std::string> shorter = {"trainer.max_training_steps=3", "trainer.report_steps=1"};
  const Ran ran = two.run("04_two_ranks.yaml", shorter, {"--nproc", "2"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::vector<std::string> alone = shorter;
  alone.push_back("sharding.axis_dims=[1, 1, 1, 1, 1]");
  const Ran single = one.run("04_two_ranks.yaml", alone);
  ASSERT_EQ(single.status, 0) << single.err;
  const std::vector<double> a = two.values("loss"), b = one.values("loss");
  ASSERT_EQ(a.size(), 3u);
  ASSERT_EQ(b.size(), 3u);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * b[i]);
}

TEST(Examples, EvaluationComparesTheModelBeforeAndAfterTraining) {
  try {
    elarge::find_harness("test");
  } catch (const UserError&) {
    GTEST_SKIP() << "no lm_eval";
  }
  Example example;
  const std::string before = (example.folder / "before.json").string(),
                    after = (example.folder / "after.json").string();
  const Ran ran = example.run("08_eval.yaml", {"trainer.max_training_steps=4", "actions[0].eval.output_path=" + before,
                                               "actions[2].eval.output_path=" + after});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("|hellaswag"), std::string::npos) << ran.out;
  const Ran compared = run_program({"eval", "--compare", before, after, "--tolerance", "1e9"});
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_NE(compared.out.find("word_perplexity,none"), std::string::npos) << compared.out;
}

TEST(Examples, AreAllTestedHere) {
  // Those that serve are tried with clients.
  const std::string tests = read_file(source_root() / "tests/golden/examples_test.cpp") +
                            read_file(source_root() / "tests/cli/serve_test.cpp");
  for (const auto& entry : fs::directory_iterator(source_root() / "examples")) {
    if (entry.path().extension() != ".yaml" && entry.path().extension() != ".sh") continue;
    EXPECT_NE(tests.find(entry.path().filename().string() + '"'), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace easydel::test
