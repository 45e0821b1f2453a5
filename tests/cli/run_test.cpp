// What people type instead of `easydel elarge run.yaml`, and keys of other tools in the file.
#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::run_program;

class RunWords : public testing::Test {
 protected:
  RunWords() { test::write_file(folder_ / "run.yaml", text_); }
  test::Ran run(const std::vector<std::string>& words, const std::string& input = "") const {
    return run_program(words, {.input = input, .folder = folder_.path()});
  }
  std::string text_ =
      "model: {name_or_path: x}\nmixture: {informs: [{data_files: a.jsonl}, {data_files: b.jsonl}]}\n"
      "actions: [print]\n";
  test::TemporaryFolder folder_;
};

TEST_F(RunWords, AFileAloneIsRun) {
  const auto usual = run({"run", "run.yaml", "--dry-run"});
  ASSERT_EQ(usual.status, 0) << usual.err;
  EXPECT_EQ(run({"run.yaml", "--dry-run"}).out, usual.out);
  EXPECT_EQ(run({"-q", "run.yaml", "--dry-run"}).out, usual.out);
}

TEST_F(RunWords, ASecondRunInAFolderIsRefusedBeforeItsModelIsLoaded) {
  const auto model = test::test_data("models/stories260K-hf").string();
  test::write_file(folder_ / "lines.txt", "Once upon a time\n");
  test::write_file(folder_ / "train.yaml", "model: {name_or_path: " + model +
                                               "}\nmixture: {informs: [{data_files: lines.txt}]}\ntrainer: "
                                               "{max_training_steps: 1, save_directory: out, model_name: a}\n"
                                               "actions: [train]\n");
  const files::Lock first(folder_ / "out/a/.lock", folder_ / "out/a", "this run");
  const auto second = run({"run", "train.yaml"});
  EXPECT_EQ(second.status, 2);
  EXPECT_TRUE(second.err.starts_with("out/a: is in use by process ")) << second.err;  // and not "loaded ..." before it
}

TEST_F(RunWords, AMinusIsStandardInput) {
  EXPECT_EQ(run({"run", "-", "--dry-run"}, text_).out, run({"run", "run.yaml", "--dry-run"}).out);
  const auto bad = run({"run", "-", "--dry-run"}, "model: {nam: x}\nactions: [print]\n");
  EXPECT_EQ(bad.status, 2);
  EXPECT_TRUE(bad.err.starts_with("standard input:1:")) << bad.err;
  EXPECT_EQ(run({"--nproc", "2", "run", "-"}, text_).err,
            "easydel elarge -: several ranks cannot all read standard input\n    save the run as a file\n");
}

TEST_F(RunWords, HelpIsACommand) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "generate"}).out, run({"generate", "--help"}).out);
  EXPECT_FALSE(run({"help"}).out.empty());
}

TEST_F(RunWords, SetTakesIndicesBetweenDotsAndActions) {
  const auto dotted = run({"run", "run.yaml", "--dry-run", "--set", "mixture.informs.1.data_files=c.jsonl"});
  ASSERT_EQ(dotted.status, 0) << dotted.err;
  EXPECT_EQ(dotted.out, run({"run", "run.yaml", "--dry-run", "--set", "mixture.informs[1].data_files=c.jsonl"}).out);
  EXPECT_NE(dotted.out.find("c.jsonl"), std::string::npos);
  EXPECT_EQ(run({"run", "run.yaml", "--dry-run", "--set", "mixture.informs.2.data_files=c"}).err,
            "--set mixture.informs.2.data_files=c: mixture.informs[2].data_files: there is no item 2\n    items are "
            "counted from 0; new items can only be added in the file\n1 problem in run.yaml; nothing was run.\n");
  EXPECT_EQ(run({"run", "run.yaml", "--dry-run", "--set", "mixture.informs.0.typ=c"})
                .err.find("--set mixture.informs.0.typ=c: mixture.informs[0].typ: no such key"),
            0u);
  const auto actions = run({"run", "run.yaml", "--dry-run", "--set", "actions=[print, print]"});
  ASSERT_EQ(actions.status, 0) << actions.err;
  EXPECT_NE(actions.out.find("actions: [print, print]\n"), std::string::npos) << actions.out;
  EXPECT_EQ(run({"run", "run.yaml", "--set", "actions=[trian]"})
                .err.find("--set actions=[trian]: actions[0]: unknown action"),
            0u);
}

TEST_F(RunWords, KeysOfOtherToolsSayOurKeyAndItsValue) {
  const std::pair<const char*, const char*> keys[] = {
      {"output_dir: out", "write trainer.save_directory: out"},
      {"lr_scheduler_type: cosine_with_restarts", "write trainer.scheduler: cosine_with_restarts"},
      {"lr_scheduler_type: constant_with_warmup", "write trainer.scheduler: constant_with_warmup"},
      {"per_device_train_batch_size: 4, gradient_accumulation_steps: 8",
       "write trainer.total_batch_size: 32  # per_device x gradient_accumulation_steps, times the number of ranks"},
      {"micro_batch_size: 2", "write trainer.total_batch_size: 2  # per_device"},
      {"bf16: true", "write loader.dtype: bf16"},
      {"gradient_checkpointing: true", "write base_config.values.gradient_checkpointing: nothing_saveable"},
      {"num_epochs: 2.5", "write trainer.num_train_epochs: 3"},
      {"gradient_clipping: 1.0", "write trainer.clip_grad: 1.0"},
      {"optim: adamw_torch_fused", "write trainer.optimizer: adamw"},
      {"logging_steps: 5", "write trainer.log_steps: 5"},
      {"eval_strategy: \"no\"", "write trainer.do_eval: false"},
      {"cutoff_len: 2048", "write trainer.max_length: 2048"},
      {"report_to: wandb", "leave it out: metrics.jsonl"},
      {"lora_rank: 8", "write lora.r: 8"},
      {"base_model: org/x", "write model.name_or_path: org/x"},
      {"datasets: [{path: a.jsonl, type: alpaca}]", "write mixture.informs: [{data_files: a.jsonl}]"},
      {"flash_attention: true", "write base_config.values.attn_mechanism: flash_attn2"},
      {"val_set_size: 0.05", "name the rows that are held out: mixture.evaluation"},
  };
  for (const auto& [key, remedy] : keys)
    for (const std::string& text : {str("trainer: {", key, "}\n"), str("{", key, "}")}) {
      const bool flat = !text.starts_with("trainer");
      test::write_file(folder_ / "other.yaml",
                       "model: {name_or_path: x}\nactions: [print]\n" +
                           (flat ? test::replaced(text.substr(1, text.size() - 2), ", ", "\n") + "\n" : text));
      if (flat && std::string_view(key).find("[{") != std::string_view::npos) continue;  // its commas are its own
      const auto ran = run({"run", "other.yaml"});
      EXPECT_EQ(ran.status, 2) << key;
      EXPECT_NE(ran.err.find(remedy), std::string::npos) << text << ran.err;
    }
  // A mistake in one of our keys still says the nearest one.
  test::write_file(folder_ / "other.yaml", "model: {name_or_path: x}\nactions: [print]\ntrainer: {learnin_rate: 1}\n");
  EXPECT_NE(run({"run", "other.yaml"}).err.find("did you mean 'learning_rate'?"), std::string::npos);
}

}  // namespace
}  // namespace easydel
