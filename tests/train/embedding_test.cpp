// trainer_type: embedding against runs that sentence-transformers trained, and against itself in other parts.
#include "easydel/models/embedding.h"

#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;

const Value& recorded() {
  static const Value all = parse_json(files::read_compressed(test::test_data("encoders/training.json.gz")));
  return all;
}

std::string lines_of(const Value& rows) {
  std::string out;
  for (const Value& row : rows.items) out += to_json(row) + "\n";
  return out;
}

// A run of a recorded case, and more keys of the trainer.
TrainerParts parts_of(const fs::path& folder, const Value& recorded_case, const std::string& more) {
  test::write_file(folder / "rows.jsonl", lines_of(*recorded_case.find("rows")));
  Value trainer = *recorded_case.find("keys"), mixture = Value::map();
  test::put(trainer, str("{trainer_type: embedding, save_directory: \"", folder.string(),
                         "\", model_name: small, total_batch_size: 8, max_training_steps: 8, shuffle_train_dataset: "
                         "false, weight_decay: 0, log_steps: 1, report_steps: 1, resume_if_possible: false}"));
  test::put(trainer, "{" + more + "}");
  test::put(mixture, str("{informs: [{data_files: \"", (folder / "rows.jsonl").string(), "\"}]}"));
  TrainerParts parts;
  config::read(trainer, parts.trainer, "trainer").throw_if_any();
  config::read(mixture, parts.mixture, "mixture").throw_if_any();
  parts.load.dtype = parts.load.param_dtype = models::DTypeSetting::fp32;
  parts.load.training = true;
  parts.load.task = parts.trainer.facts().task;
  const fs::path model = test::test_data("encoders/" + recorded_case.find("model")->scalar);
  if (recorded_case.find("model")->scalar == "sentences")
    parts.load.overrides = parse_yaml("{hidden_dropout_prob: 0, attention_probs_dropout_prob: 0}");
  parts.model = models::load_model(model, parts.load);
  parts.tokenizer = text::Tokenizer::load(model);
  parts.save_dtype = models::DTypeSetting::fp32;
  return parts;
}

struct Curve {
  std::vector<double> losses, norms;
};
Curve train(TrainerParts parts) {
  const fs::path folder = parts.trainer.common.save_directory;
  Trainer(std::move(parts)).run();
  return {test::metric(folder / "small", "loss"), test::metric(folder / "small", "grad_norm")};
}

void expect_near(const std::vector<double>& ours, const std::vector<double>& theirs, double within) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(ours[i], theirs[i], within * std::max(1.0, std::abs(theirs[i]))) << "step " << i + 1;
}

class RecordedEmbedding : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedEmbedding, IsTrainedAsBySentenceTransformers) {
  const test::LogLines log;
  const Value& gold = *recorded().find(GetParam());
  Curve theirs;
  for (const Value& step : gold.find("steps")->items) {
    theirs.losses.push_back(*step.find("loss")->as_double());
    theirs.norms.push_back(*step.find("grad_norm")->as_double());
  }
  for (const char* more : {"", "gradient_accumulation_steps: 4"}) {
    SCOPED_TRACE(more);
    const test::TemporaryFolder folder;
    const TrainerParts parts = parts_of(folder.path(), gold, more);
    const std::unique_ptr<Method> method = build_method({parts.trainer, parts.mixture, parts.tokenizer, nullptr});
    const Curve ours = train(parts);
    expect_near(ours.losses, theirs.losses, 1e-4);
    expect_near(ours.norms, theirs.norms, 3e-4);

    // The saved folder says by itself how it embeds.
    models::LoadOptions load;
    load.dtype = models::DTypeSetting::fp32;
    const auto saved = models::load_model(folder.path() / "small/run-8", load);
    EXPECT_EQ(saved->task(), models::Task::base);
    const auto& texts = gold.find("texts")->items;
    for (size_t i = 0; i < texts.size(); ++i) {
      data::TypedRow row;
      row.query = row.positive = texts[i];
      row.negatives = Value::list();
      row.negatives.items = {texts[i]};
      data::Example example = *method->prepare(row).example;
      const data::Example* const one = &example;
      example.tokens.resize(size_t(example.lengths[0])), example.labels.resize(example.tokens.size());
      example.lengths.resize(1), example.columns.clear();
      const c10::AutoGradMode no_grad(false);
      const Batch batch = flat_batch({&one, 1});
      nn::Pass pass = nn::Pass::over(batch.cu_seqlens);
      const Tensor hidden = saved->forward({batch.tokens}, pass).hidden;
      const Tensor vector = models::embeddings(models::read_embedding(*saved), hidden, batch.tokens, pass)[0];
      const auto& expected = gold.find("embeddings")->items[i].items;
      ASSERT_EQ(vector.size(0), int64_t(expected.size()));
      for (size_t k = 0; k < expected.size(); ++k)
        EXPECT_NEAR(vector[int64_t(k)].item<double>(), *expected[k].as_double(), 1e-4) << i << ", " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordedEmbedding,
                         ::testing::Values("mnrl", "infonce_two_negatives", "dot", "triplet", "matryoshka",
                                           "matryoshka_triplet", "weighted_mean", "max"),
                         [](const auto& info) { return info.param; });

TEST(Embedding, EvaluatesByItsOwnMetrics) {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  TrainerParts parts = parts_of(folder.path(), *recorded().find("mnrl"), "do_eval: true, evaluation_steps: 4");
  Value mixture = Value::map();
  const std::string file = (folder.path() / "rows.jsonl").string();
  test::put(mixture, str("{informs: [{data_files: \"", file, "\"}, {data_files: \"", file, "\", split: validation}]}"));
  config::read(mixture, parts.mixture, "mixture").throw_if_any();
  train(parts);
  const std::vector<double> accuracy = test::metric(folder.path() / "small", "eval_contrastive_accuracy");
  ASSERT_EQ(accuracy.size(), 2u);
  EXPECT_GT(accuracy[1], 1.0 / 8);
}

std::string refusal(const std::string& keys, const std::string& row) {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  Value gold = *recorded().find("infonce_two_negatives");
  if (!row.empty()) gold.find("rows")->items = {parse_json(row)};
  try {
    Trainer trainer(parts_of(folder.path(), gold, keys));
  } catch (const UserError& error) {
    const std::string text = error.what(), file = (folder.path() / "rows.jsonl").string();
    const size_t at = text.find(file);
    return at == std::string::npos ? text : text.substr(0, at) + "rows.jsonl" + text.substr(at + file.size());
  }
  return "none";
}

TEST(Embedding, RefusesWhatCannotBeLearned) {
  const std::string alone = R"({"query": "a", "positive": "b"})";
  EXPECT_EQ(refusal("loss_type: triplet", alone),
            "rows.jsonl:1: the row has no negative, and the loss triplet compares with one\n    give it a field "
            "'negative', name yours by trainer.negative_field, or set loss_type: infonce");
  EXPECT_EQ(refusal("total_batch_size: 1", alone),
            "rows.jsonl:1: the row has no negative, and an update of one row has no other text to compare with\n    "
            "raise trainer.total_batch_size, or give negatives");
  EXPECT_EQ(refusal("", R"({"query": "a", "positive": ""})"),
            "rows.jsonl:1: field 'positive' is empty\n    drop the row, or give it a text");
  EXPECT_EQ(
      refusal("matryoshka_dims: [8, 25]", ""),
      "trainer.matryoshka_dims: 25 is more than the 24 numbers of the model's vectors\n    give sizes of prefixes");
}

}  // namespace
}  // namespace easydel::train
