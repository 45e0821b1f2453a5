// trainer_type: base against runs that transformers trained, and the draws of masked tokens.
#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "easydel/tensor/memory.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;

const Value& recorded_tasks() {
  static const Value all = parse_json(files::read_compressed(test::test_data("encoders/own_tasks.json.gz")));
  return all;
}

// `keys` of the trainer as YAML, over the tiny encoder.
TrainerParts base_run(const fs::path& folder, const Value& rows, const std::string& keys, const Value& config,
                      models::Task task) {
  std::string lines;
  for (const Value& row : rows.items) lines += to_json(row) + "\n";
  test::write_file(folder / "rows.jsonl", lines);
  Value trainer = Value::map(), mixture = Value::map();
  test::put(trainer, str("{trainer_type: base, save_directory: \"", folder.string(),
                         "\", model_name: small, max_training_steps: 8, shuffle_train_dataset: false, weight_decay: 0, "
                         "log_steps: 1, report_steps: 1, resume_if_possible: false}"));
  test::put(trainer, keys);
  test::put(mixture, str("{informs: [{data_files: \"", (folder / "rows.jsonl").string(), "\"}]}"));
  TrainerParts parts;
  config::read(trainer, parts.trainer, "trainer").throw_if_any();
  config::read(mixture, parts.mixture, "mixture").throw_if_any();
  parts.load.dtype = parts.load.param_dtype = models::DTypeSetting::fp32;
  parts.load.training = true;
  parts.load.task = task;
  parts.load.overrides = config.is_map() ? config : Value::map();
  for (const char* dropout : {"hidden_dropout_prob", "attention_probs_dropout_prob"})
    parts.load.overrides.set(dropout, Value::number(0));
  const fs::path model = test::test_data("encoders/sentences");
  parts.model = models::load_model(model, parts.load);
  parts.tokenizer = text::Tokenizer::load(model);
  parts.save_dtype = models::DTypeSetting::fp32;
  return parts;
}

class RecordedTask : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedTask, IsTrainedAsByTransformers) {
  tensor::use_kept_memory();  // as the program does, so that memory is measured with short examples
  const test::LogLines log;
  const test::TemporaryFolder folder;
  const Value& gold = *recorded_tasks().find(GetParam());
  const bool words = *gold.find("words")->as_bool(), answers = GetParam() == "answers";
  TrainerParts parts = base_run(folder.path(), *gold.find("rows"), to_json(*gold.find("keys")), *gold.find("config"),
                                answers ? models::Task::question_answering
                                : words ? models::Task::token_classification
                                        : models::Task::sequence_classification);
  int64_t zeroed = 0;
  for (nn::Entry& entry : parts.model->parameters().entries()) {
    if (!entry.path.starts_with(answers ? "qa_outputs." : "classifier.")) continue;
    const c10::AutoGradMode no_grad(false);
    entry.shard.zero_();
    ++zeroed;
  }
  ASSERT_EQ(zeroed, 2);
  Trainer(std::move(parts)).run();
  const std::vector<double> losses = test::metric(folder.path() / "small", "loss"),
                            norms = test::metric(folder.path() / "small", "grad_norm");
  const auto& steps = gold.find("steps")->items;
  ASSERT_EQ(losses.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_NEAR(losses[i], *steps[i].find("loss")->as_double(), 1e-5) << "step " << i + 1;
    const double norm = *steps[i].find("grad_norm")->as_double();
    EXPECT_NEAR(norms[i], norm, 1e-4 * norm) << "step " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordedTask,
                         ::testing::Values("one_class", "names", "several", "number", "words", "answers"),
                         [](const auto& info) { return info.param; });

// Each window of each text, and the answer's first and last token in it.
TEST(OwnTask, FindsAnswersInWindowsAsTransformersDoes) {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  const Value& gold = *recorded_tasks().find("answers");
  TrainerParts parts = base_run(folder.path(), *gold.find("rows"), to_json(*gold.find("keys")), Value::map(),
                                models::Task::question_answering);
  const auto method = build_method({parts.trainer, parts.mixture, parts.tokenizer, parts.model, {}});
  std::vector<data::Example> found, further;
  for (const Value& fields : gold.find("rows")->items) {
    data::FieldRules rules;
    rules.taken = parts.trainer.facts().rows;
    data::Prepared made = method->prepare(data::typed({fields, "row"}, rules));
    found.push_back(*made.example);
    further.insert(further.end(), made.further.begin(), made.further.end());
  }
  found.insert(found.end(), further.begin(), further.end());
  const auto& wanted = gold.find("examples")->items;
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::vector<int32_t> ids;
    for (const Value& id : wanted[i].find("input_ids")->items) ids.push_back(int32_t(*id.as_int()));
    EXPECT_EQ(found[i].tokens, ids) << i;
    for (const auto& [ours, theirs] : {std::pair{"answer_begin", "start"}, {"answer_end", "end"}})
      EXPECT_EQ(std::get<std::vector<int64_t>>(found[i].find(ours)->values).at(0), *wanted[i].find(theirs)->as_int())
          << i << " " << ours;
  }
}

Value texts(int count) {
  Value out = Value::list();
  for (int i = 0; i < count; ++i) {
    Value row = Value::map();
    row.set("text", Value::text(str("the old king went to the sea and saw the big dog and ", i % 2 ? "she" : "he",
                                    " was happy in the garden with the cat")));
    out.items.push_back(std::move(row));
  }
  return out;
}

// A source of one epoch of prepared rows.
class RowsOfOneEpoch final : public BatchSource {
 public:
  explicit RowsOfOneEpoch(std::vector<data::Example> examples) : examples_(std::move(examples)) {}
  int64_t steps_in_epoch() const override { return 1; }
  std::vector<MicroBatch> step(int64_t) override {
    MicroBatch batch;
    for (const data::Example& example : examples_) batch.push_back(&example);
    return {batch};
  }
  Value cursor(int64_t) const override { return Value::map(); }
  std::string fingerprint() const override { return "rows"; }

 private:
  std::vector<data::Example> examples_;
};

TEST(MaskedLearning, DrawsTokensAnewInEveryStepAndTheSameInEveryRun) {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  const TrainerParts parts = base_run(folder.path(), texts(1), "{mlm_probability: 0.3}", {}, models::Task::masked_lm);
  const std::unique_ptr<Method> method = build_method({parts.trainer, parts.mixture, parts.tokenizer, parts.model});
  data::TypedRow row;
  row.kind = data::RowKind::text;
  row.text = *texts(1).items[0].find("text");
  const data::Example example = *method->prepare(row).example;
  const std::unique_ptr<BatchSource> source =
      method->source(std::make_unique<RowsOfOneEpoch>(std::vector<data::Example>(300, example)), nullptr);
  const int32_t mask = *parts.tokenizer->id_of("[MASK]");
  const auto drawn = [&](int64_t step) {
    std::vector<data::Example> out;
    const std::vector<MicroBatch> batches = source->step(step);
    for (const data::Example* const one : batches.at(0)) out.push_back(*one);
    return out;
  };
  int64_t chosen = 0, masked = 0, kept = 0, all = 0;
  std::vector<std::vector<int32_t>> steps;
  for (const int64_t step : {0, 1, 0}) {
    std::vector<int32_t>& tokens = steps.emplace_back();
    for (const data::Example& one : drawn(step)) {
      tokens.insert(tokens.end(), one.tokens.begin(), one.tokens.end());
      for (size_t i = 0; i < one.tokens.size(); ++i) {
        const bool added = i == 0 || i + 1 == one.tokens.size();  // [CLS] and [SEP]
        all += !added;
        if (one.labels[i] == data::no_label) {
          EXPECT_EQ(one.tokens[i], example.tokens[i]);
          continue;
        }
        EXPECT_FALSE(added);
        EXPECT_EQ(one.labels[i], example.tokens[i]);
        ++chosen, masked += one.tokens[i] == mask, kept += one.tokens[i] == example.tokens[i];
      }
    }
  }
  EXPECT_NE(steps[0], steps[1]);
  EXPECT_EQ(steps[0], steps[2]);
  EXPECT_NEAR(double(chosen) / double(all), 0.3, 0.02);
  EXPECT_NEAR(double(masked) / double(chosen), 0.8, 0.03);
  EXPECT_NEAR(double(kept) / double(chosen), 0.1, 0.03);
}

TEST(MaskedLearning, LearnsAndEvaluatesTheSameTokensEachTime) {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  TrainerParts parts = base_run(folder.path(), texts(16),
                                "{learning_rate: 1e-2, total_batch_size: 8, gradient_accumulation_steps: 2, "
                                "max_training_steps: 16, do_eval: true, evaluation_steps: 8, eval_on_start: true}",
                                {}, models::Task::masked_lm);
  Value mixture = Value::map();
  const std::string file = (folder.path() / "rows.jsonl").string();
  test::put(mixture, str("{informs: [{data_files: \"", file, "\"}], evaluation: [{data_files: \"", file, "\"}]}"));
  config::read(mixture, parts.mixture, "mixture").throw_if_any();
  Trainer trainer(std::move(parts));
  trainer.run();
  const std::vector<double> losses = test::metric(folder.path() / "small", "eval_loss");
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_LT(losses[2], 0.8 * losses[0]);
  EXPECT_EQ(trainer.evaluate().loss, trainer.evaluate().loss);
}

std::string refused(models::Task task, const std::string& row, const std::string& config = "{num_labels: 2}",
                    const std::string& keys = "") {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  Value rows = Value::list();
  rows.items.push_back(parse_json(row));
  try {
    Trainer trainer(base_run(folder.path(), rows, "{total_batch_size: 1" + keys + "}", parse_yaml(config), task));
  } catch (const UserError& error) {
    const std::string text = error.what(), file = (folder.path() / "rows.jsonl").string();
    const size_t at = text.find(file);
    return at == std::string::npos ? text : text.substr(0, at) + "rows.jsonl" + text.substr(at + file.size());
  }
  return "none";
}

TEST(OwnTask, RefusesRowsThatTheModelCannotLearn) {
  using enum models::Task;
  EXPECT_EQ(refused(sequence_classification, R"({"text": "a dog", "label": 2})"),
            "rows.jsonl:1: label 2 is not one of the model's 2 classes\n    give numbers from 0 to 1, or set "
            "base_config.values.num_labels");
  EXPECT_EQ(refused(sequence_classification, R"({"text": "a dog"})"),
            "rows.jsonl:1: a row of kind text has no label, and the model learns classes\n    give text and label");
  EXPECT_EQ(refused(token_classification, R"({"tokens": ["a", "dog"], "ner_tags": [1]})"),
            "rows.jsonl:1: the row has 2 words and 1 label\n    give one label for each word");
  EXPECT_EQ(refused(token_classification, R"({"text": "a dog", "label": 1})"),
            "rows.jsonl:1: the row has a text, and the model classifies words\n    give words as a list, with as many "
            "labels");
  EXPECT_EQ(
      refused(sequence_classification, R"({"text": "a dog", "label": [1, 0, 1]})",
              "{num_labels: 2, problem_type: multi_label_classification}"),
      "rows.jsonl:1: the row has 3 labels, and the model scores 2\n    give a list with 1 for each class that the "
      "text has, and 0 for the others");
  const std::string answers = R"("answers": {"text": ["dog"], "answer_start": [)";
  EXPECT_EQ(refused(question_answering, R"({"question": "who", "context": "a dog", )" + answers + "1]}}"),
            "rows.jsonl:1: the answer dog is not at character 1 of the context\n    give the character at which it "
            "begins, counted from 0");
  EXPECT_EQ(
      refused(question_answering, R"({"question": "who", "context": "a dog", "answers": ["dog"]})"),
      "rows.jsonl:1: the answers are not {text: [...], answer_start: [...]}\n    give the texts of the answers and "
      "the character of the context at which each begins; empty lists: none");
  EXPECT_EQ(
      refused(question_answering, R"({"text": "a dog"})"),
      "rows.jsonl:1: the row has no question and context, and the model finds answers in texts\n    give question, "
      "context and answers");
  const std::string row = R"({"question": "who", "context": "the king saw a dog", )" + answers + "15]}}";
  EXPECT_EQ(refused(question_answering, row, "{}", ", max_length: 7, doc_stride: 3"),
            "rows.jsonl:1: beside the 6 tokens of the question, trainer.max_length: 7 leaves 1 token of the context, "
            "not more than doc_stride: 3\n    raise trainer.max_length, or lower doc_stride");
  EXPECT_EQ(refused(base, R"({"text": "a dog"})"),
            "model.task: the model has no head, so it has no loss\n    set model.task to causal-language-model or "
            "sequence-classification or question-answering, or give a folder with a masked language model's head or a "
            "head of words' classes");
}

}  // namespace
}  // namespace easydel::train
