// The methods on given answers through the real trainer, from rows to checkpoints: on ranks, in micro-batches, after a
// kill.
#include <gtest/gtest.h>

#include <csignal>

#include "easydel/base/files.h"
#include "easydel/weights/safetensors.h"
#include "support/ranks.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;
using test::Meeting;

// Rows of a kind for as many examples.
void write_rows(const fs::path& file, const std::string& kind) {
  std::string lines;
  for (int i = 0; i < 12; ++i) {
    const std::string ball = str(i, " red balls"), end = i % 3 ? " and a hat." : ".";
    const std::string prompt = str("Once upon a time there was a ", i % 2 ? "dog" : "cat", " who");
    const std::string good = str(" had ", ball, end), bad = str(" sat", i % 4 ? "." : " down and slept.");
    Value row = Value::map();
    row.set("prompt", Value::text(prompt));
    if (kind == "marks") {
      row.set("completion", Value::text(i % 3 ? good : bad));
      row.set("label", Value::boolean(i % 3 != 0));
    } else if (kind == "answers") {
      row.set("completion", Value::text(good));
    } else if (kind == "steps") {
      row.set("completions", Value::list());
      row.set("labels", Value::list());
      for (int k = 0; k <= i % 3; ++k) {
        row.find("completions")->items.push_back(Value::text(str("It had ", k, end)));
        row.find("labels")->items.push_back(Value::boolean((i + k) % 2 == 0));
      }
    } else if (kind == "contrast") {
      row.set("query", *row.find("prompt"));
      row.set("positive", Value::text(good));
      row.set("negatives", Value::list());
      for (int k = 0; k < i % 3; ++k) row.find("negatives")->items.push_back(Value::text(str(bad, " ", k)));
    } else {
      row.set("chosen", Value::text(good));
      row.set("rejected", Value::text(bad));
      row.set("reference", Value::text(str(" was kind", end)));
      row.set("margin", Value::number(0.1 * (i % 3)));
    }
    lines += to_json(row) + "\n";
  }
  test::write_file(file, lines);
}

struct Learned {
  const char* name;
  const char* rows;
  const char* keys;
};
void PrintTo(const Learned& one, std::ostream* out) { *out << one.name; }

// Losses of the whole micro-batch among them: sorted pairs, token means, a divergence, a running mean.
constexpr Learned all[] = {
    {"dpo_aot", "pairs", "trainer_type: dpo, loss_type: [sigmoid, aot, aot_pair, sft]"},
    {"dpo_0_24", "pairs",
     "trainer_type: dpo, form: trl_0_24, loss_type: bco_pair, rpo_alpha: 0.5, use_weighting: true"},
    {"orpo", "pairs", "trainer_type: orpo"},
    {"cpo", "pairs", "trainer_type: cpo"},
    {"simpo", "pairs", "trainer_type: simpo"},
    {"tpo", "pairs", "trainer_type: tpo"},
    {"kto", "marks", "trainer_type: kto"},
    {"bco", "marks", "trainer_type: bco"},
    {"bco_ratio", "marks", "trainer_type: bco, embedding_model: SENTENCES, max_density_ratio: 2"},
    {"reward", "pairs", "trainer_type: reward"},
    {"prm", "steps", "trainer_type: prm"},
    {"distillation", "answers", "trainer_type: distillation"},
    {"gkd", "answers", "trainer_type: gkd, lmbda: 1, max_completion_length: 8"},
    // At the default temperature rounding grows to more than the tolerance in an update of AdamW.
    {"embedding", "contrast", "trainer_type: embedding, temperature: 0.5"},
};

TrainerParts parts_of(const fs::path& folder, const Learned& method, const std::string& more,
                      std::shared_ptr<const collective::Team> team = collective::Team::alone()) {
  const fs::path rows = folder / (std::string(method.rows) + ".jsonl");
  if (!fs::exists(rows)) write_rows(rows, method.rows);
  TrainerParts parts;
  Value t = Value::map(), m = Value::map();
  test::put(t, str("{save_directory: \"", folder.string(),
                   "\", learning_rate: 1e-3, total_batch_size: 8, max_training_steps: 3, max_length: 64, log_steps: 1, "
                   "report_steps: 1, clip_grad: 1.0, ",
                   test::replaced(method.keys, "SENTENCES", test::test_data("encoders/sentences").string()), "}"));
  test::put(t, "{" + more + "}");
  test::put(m, str("{informs: [{data_files: \"", rows.string(), "\"}]}"));
  config::read(t, parts.trainer, "trainer").throw_if_any();
  config::read(m, parts.mixture, "mixture").throw_if_any();
  parts.load.dtype = parts.load.param_dtype = models::DTypeSetting::fp32;
  parts.load.training = true;
  parts.load.team = std::move(team);
  const MethodFacts& facts = parts.trainer.facts();
  if (facts.task != models::Task::causal_lm) parts.load.task = facts.task;
  parts.load.labels = facts.labels;
  const auto model = test::test_data("models/stories260K-hf");
  parts.model = models::load_model(model, parts.load);
  if (facts.teacher == SideModelUse::required) {
    models::LoadOptions load = parts.load;
    load.training = false;
    parts.side.teacher.model = models::load_model(test::test_data("models/stories-half"), load);
  }
  parts.tokenizer = text::Tokenizer::load(model);
  parts.save_dtype = models::DTypeSetting::fp32;
  return parts;
}

class AnswerMethods : public ::testing::TestWithParam<Learned> {
 protected:
  const fs::path& folder() const { return folder_.path(); }
  std::vector<double> metric(const std::string& run, const char* name) const {
    return test::metric(folder() / run, name);
  }
  void expect_near(const std::string& one, const std::string& other, const char* name, double within) const {
    const auto a = metric(one, name), b = metric(other, name);
    ASSERT_EQ(a.size(), 3u) << name;
    ASSERT_EQ(b.size(), a.size()) << name;
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(b[i], a[i], within * std::max(std::abs(a[i]), 1e-3)) << name << ", step " << i + 1;
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_P(AnswerMethods, LearnTheSameOnOneRankAndOnTwo) {
  const auto train = [&](int ranks, const std::vector<int64_t>& sizes, const std::string& name) {
    test::run_ranks(ranks, [&](const Meeting& meeting) {
      std::shared_ptr<const collective::Team> team = collective::Team::alone();
      if (ranks > 1) {
        collective::TeamOptions options;
        options.file_store = meeting.file;
        options.connect_seconds = options.timeout_seconds = 60;
        team = collective::Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), sizes), options);
      }
      Trainer(parts_of(folder(), GetParam(), "gradient_accumulation_steps: 2, model_name: " + name, team)).run();
    });
  };
  write_rows(folder() / (std::string(GetParam().rows) + ".jsonl"), GetParam().rows);
  train(1, {}, "one");
  const std::pair<const char*, std::vector<int64_t>> meshes[] = {
      {"dp", {1, 2, 1, 1, 1}}, {"fsdp", {2, 1, 1, 1, 1}}, {"tp", {1, 1, 1, 2, 1}}};
  for (const auto& [name, sizes] : meshes) {
    train(2, sizes, name);
    SCOPED_TRACE(name);
    expect_near("one", name, "loss", 1e-5);
    expect_near("one", name, "grad_norm", 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AnswerMethods, ::testing::ValuesIn(all),
                         [](const auto& info) { return std::string(info.param.name); });

// TRL divides these losses by the number of examples or labels of the update.
using InMicroBatches = AnswerMethods;
TEST_P(InMicroBatches, AreOneBatch) {
  test::run_ranks(1, [&](const Meeting&) {
    Trainer(parts_of(folder(), GetParam(), "model_name: whole")).run();
    Trainer(parts_of(folder(), GetParam(), "model_name: parts, gradient_accumulation_steps: 4")).run();
  });
  expect_near("whole", "parts", "loss", 1e-6);
  const auto a = metric("whole", "grad_norm"), b = metric("parts", "grad_norm");
  ASSERT_EQ(a.size(), 3u);
  ASSERT_EQ(b.size(), 3u);
  EXPECT_NEAR(b[0], a[0], 2e-6 * a[0]);
}
constexpr Learned divided[] = {
    {"dpo", "pairs", "trainer_type: dpo, shuffle_train_dataset: false"},
    {"simpo", "pairs", "trainer_type: simpo, shuffle_train_dataset: false"},
    {"kto", "marks", "trainer_type: kto, loss_type: apo_zero_unpaired, shuffle_train_dataset: false"},
    {"reward", "pairs", "trainer_type: reward, shuffle_train_dataset: false"},
    {"prm", "steps", "trainer_type: prm, shuffle_train_dataset: false"},
    {"embedding", "contrast", "trainer_type: embedding, shuffle_train_dataset: false"},
};
INSTANTIATE_TEST_SUITE_P(Divided, InMicroBatches, ::testing::ValuesIn(divided),
                         [](const auto& info) { return std::string(info.param.name); });

struct KillAfter : Watcher {
  void stepped(const StepReport& report) override {
    if (report.step == 4) raise(SIGKILL);
  }
};

// The running mean of the rewards and the head of a class survive a kill to the byte.
using Killed = AnswerMethods;
TEST_P(Killed, GoOnToTheByte) {
  const std::string keys = "save_steps: 3, max_training_steps: 6, num_train_epochs: 5, gradient_accumulation_steps: 2";
  test::run_ranks(
      1, [&](const Meeting&) { Trainer(parts_of(folder(), GetParam(), keys + ", model_name: straight")).run(); });
  const std::vector<int> exits = test::exits_of_ranks(1, [&](const Meeting&) {
    KillAfter watcher;
    TrainerParts parts = parts_of(folder(), GetParam(), keys + ", model_name: killed");
    parts.watcher = &watcher;
    Trainer(std::move(parts)).run();
  });
  EXPECT_EQ(exits, std::vector<int>{128 + SIGKILL});
  test::run_ranks(
      1, [&](const Meeting&) { Trainer(parts_of(folder(), GetParam(), keys + ", model_name: killed")).run(); });
  for (const char* file : {"run-6/model.safetensors", "run-6/optimizer/optimizer-00001-of-00001.safetensors"})
    EXPECT_EQ(test::read_file(folder() / "straight" / file), test::read_file(folder() / "killed" / file)) << file;
  EXPECT_EQ(metric("straight", "loss"), metric("killed", "loss"));
}
constexpr Learned killed[] = {
    {"bco", "marks", "trainer_type: bco"},
    {"embedding", "contrast", "trainer_type: embedding"},
    {"reward", "pairs", "trainer_type: reward"},
    {"dpo", "pairs",
     "trainer_type: dpo, form: trl_0_24, loss_type: bco_pair, sync_ref_model: true, "
     "ref_model_sync_steps: 2"},
};
INSTANTIATE_TEST_SUITE_P(Some, Killed, ::testing::ValuesIn(killed),
                         [](const auto& info) { return std::string(info.param.name); });

// What the reference says is computed once, kept beside the checkpoints, and not computed again.
TEST(PrecomputedReference, IsKeptForTheNextRunAndGivesTheSameLosses) {
  const test::TemporaryFolder folder;
  constexpr Learned dpo{"dpo", "pairs", "trainer_type: dpo, beta: 0.5, do_eval: true"};
  const auto run = [&](const std::string& name, const std::string& more) {
    test::run_ranks(1, [&](const Meeting&) {
      TrainerParts parts = parts_of(folder.path(), dpo, str("model_name: ", name, ", ", more));
      Value mixture = Value::map();
      const std::string rows = (folder / "pairs.jsonl").string();
      test::put(mixture, str("{informs: [{data_files: \"", rows, "\"}], evaluation: [{data_files: \"", rows, "\"}]}"));
      config::read(mixture, parts.mixture, "mixture").throw_if_any();
      const test::LogLines said;
      log::set_level(log::Level::info);
      Trainer(std::move(parts)).run();
      test::write_file(folder / (name + ".log"), said.text);
    });
    return test::read_file(folder / (name + ".log")).find("log-probabilities are read from") != std::string::npos;
  };
  write_rows(folder / "pairs.jsonl", "pairs");
  EXPECT_FALSE(run("live", "precompute_ref_log_probs: false"));
  EXPECT_FALSE(run("kept", "precompute_ref_log_probs: true"));
  EXPECT_EQ(test::metric(folder / "live", "loss"), test::metric(folder / "kept", "loss"));
  EXPECT_EQ(test::metric(folder / "live", "eval_loss"), test::metric(folder / "kept", "eval_loss"));
  EXPECT_TRUE(fs::exists(folder / "kept/reference_logps.safetensors"));
  EXPECT_TRUE(run("kept", "precompute_ref_log_probs: true, resume_if_possible: false"));
  EXPECT_EQ(test::metric(folder / "live", "loss"), test::metric(folder / "kept", "loss"));
  // Other settings of the numbers, and a file that is broken, are computed anew.
  EXPECT_FALSE(run("kept", "precompute_ref_log_probs: true, resume_if_possible: false, ld_alpha: 0.5"));
  test::write_file(folder / "kept/reference_logps.safetensors", "no tensors");
  EXPECT_FALSE(run("kept", "precompute_ref_log_probs: true, resume_if_possible: false"));
}

}  // namespace
}  // namespace easydel::train
