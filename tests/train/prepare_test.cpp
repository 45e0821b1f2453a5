#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/train/sft_config.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

std::vector<int32_t> integers(const Value* list) {
  std::vector<int32_t> out;
  for (const Value& item : list->items) out.push_back(static_cast<int32_t>(*item.as_int()));
  return out;
}

// As data::Example has them: shifted, within each sequence.
std::vector<int32_t> shifted(const std::vector<int32_t>& labels, const std::vector<int32_t>& lengths) {
  std::vector<int32_t> out;
  size_t at = 0;
  for (const int32_t length : lengths) {
    for (int32_t i = 0; i < length; ++i)
      out.push_back(i + 1 < length ? labels[at + static_cast<size_t>(i) + 1] : data::no_label);
    at += static_cast<size_t>(length);
  }
  return out;
}

data::Example expected_text(const Value& row) {
  data::Example out;
  out.tokens = integers(row.find("ids"));
  const Value* lengths = row.find("lengths");
  out.lengths =
      lengths && lengths->is_list() ? integers(lengths) : std::vector<int32_t>{static_cast<int32_t>(out.tokens.size())};
  out.labels = shifted(integers(row.find("labels")), out.lengths);
  return out;
}

data::Example expected_pair(const Value& row) {
  data::Example out;
  const auto prompt = integers(row.find("prompt"));
  for (const char* name : {"chosen", "rejected"}) {
    std::vector<int32_t> ids = prompt;
    const auto answer = integers(row.find(name));
    ids.insert(ids.end(), answer.begin(), answer.end());
    std::vector<uint8_t> learn(ids.size(), 1);
    std::fill_n(learn.begin(), prompt.size(), uint8_t{0});
    out.add_sequence(ids, learn);
  }
  return out;
}

double evaluated(const std::string& loss_config) {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  const std::string lines = "evaluation: [{data_files: \"" + (folder / "lines.txt").string() + "\"}]";
  TrainerParts parts =
      test::small_run(folder.path(), "{eval_on_start: true, max_training_steps: 1, loss_config: {" + loss_config + "}}",
                      "{" + lines + "}");
  return Trainer(std::move(parts)).run().before->loss;
}

// The results of transformers' model in float64 for the same lines, with log-probabilities summed in Python.
TEST(Prepare, LabelsAreShiftedAndLeftOutAsTheLossSays) {
  EXPECT_NEAR(evaluated(""), 2.946496745653718, 3e-5);
  EXPECT_NEAR(evaluated("ignore_index: 2"), 2.0814543940879253, 3e-5);  // EOS is not learned
  EXPECT_NEAR(evaluated("shift_tokens: false"), 9.749203341843199, 1e-4);
}

// Texts, prompts with completions, conversations and pairs, cut and packed: the tokens and labels of TRL.
TEST(Prepare, RowsBecomeWhatTrlMakesOfThem) {
  const test::LogLines log;
  const Value cases = parse_json(files::read_compressed(test::test_data("trl/prepared_rows.json.gz")));
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), {});
  const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  for (const auto& [name, one] : cases.entries) {
    TrainerSection trainer;
    config::read(*one.find("trainer"), trainer, name).throw_if_any();
    const auto method = build_method({trainer, {}, tokenizer, model, {{model, nullptr}, {}, {}}});
    const test::TemporaryFolder folder;
    test::write_file(folder / "rows.json", to_json(*one.find("rows")));
    data::DatasetOptions options;
    options.informs.emplace_back().data_files = {(folder / "rows.json").string()};
    const bool pair = trainer.facts().rows.has(data::RowKind::preference);
    if (!pair && trainer.own_as<SftConfig>().packing) {
      options.packing = *trainer.own_as<SftConfig>().packing_strategy;
      options.row_length = *trainer.common.max_length;
    }
    auto dataset = data::Dataset::build(options, preparation(*method, trainer.method()));
    const auto& expected = one.find("expected")->items;
    ASSERT_EQ(dataset.examples_count(), int64_t(expected.size())) << name;
    for (size_t i = 0; i < expected.size(); ++i) {
      const data::Example want = pair ? expected_pair(expected[i]) : expected_text(expected[i]);
      const data::Example example = dataset.at(int64_t(i));
      EXPECT_EQ(example.tokens, want.tokens) << name << " row " << i;
      EXPECT_EQ(example.labels, want.labels) << name << " row " << i;
      EXPECT_EQ(example.lengths, want.lengths) << name << " row " << i;
    }
  }
}

TEST(Prepare, AConversationWithoutTheAssistantIsRefusedForAssistantOnlyLoss) {
  TrainerSection trainer;
  config::read(parse_yaml("assistant_only_loss: true"), trainer, "t").throw_if_any();
  const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  const auto method = build_method({trainer, {}, tokenizer, nullptr});
  const auto row = data::typed({parse_json(R"({"messages": [{"role": "user", "content": "hi"}]})"), "a.jsonl:1"}, {});
  EXPECT_EQ(test::refusal([&] { method->prepare(row); }),
            "a.jsonl:1: this conversation has no assistant message, so there is nothing to train on with "
            "assistant_only_loss\n    drop the row, or set trainer.assistant_only_loss: false");
}

std::string methods_of(data::RowKind kind) {
  std::vector<std::string> names;
  for (const MethodConfig& config : method_configs())
    if (config.facts.rows.has(kind)) names.emplace_back(config.name);
  return easydel::join(names, " or ");
}

TEST(Prepare, ARowOfAnotherKindIsRefused) {
  TrainerSection trainer;
  const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  const auto method = build_method({trainer, {}, tokenizer, nullptr});
  const auto row = data::typed({parse_json(R"({"prompt": "a", "chosen": "b", "rejected": "c"})"), "a.jsonl:1"}, {});
  EXPECT_EQ(test::refusal([&] { preparation(*method, trainer.method())(row); }),
            "a.jsonl:1: a row of kind preference is not for this trainer_type\n"
            "    give texts, messages, or prompt + completion; or set trainer_type: " +
                methods_of(data::RowKind::preference));
}

TEST(Prepare, TokensOutsideTheModelsVocabularyAreRefused) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a.jsonl", "{\"text\": \"Once upon a time\"}\n");
  TrainerSection trainer;
  data::MixtureConfig mixture;
  mixture.informs.emplace_back().data_files = {(folder / "a.jsonl").string()};
  const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  EXPECT_NO_THROW(check_data(trainer, mixture, tokenizer, 512));
  const std::string told = test::refusal([&] { check_data(trainer, mixture, tokenizer, 300); });
  EXPECT_TRUE(told.starts_with((folder / "a.jsonl").string() + ":1: its token ")) << told;
  EXPECT_TRUE(
      told.ends_with("is outside the model's vocabulary of 300 tokens\n"
                     "    the tokenizer belongs to another model; give the model's own"))
      << told;
}

TEST(Prepare, RowsAreTakenByTheMethodsFacts) {
  const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  TrainerSection trainer;
  config::read(parse_yaml("trainer_type: dpo"), trainer).throw_if_any();
  const auto method = build_method({trainer, {}, tokenizer, nullptr});
  const auto row = data::typed({parse_json(R"({"text": "a"})"), "a.jsonl:1"}, {});
  EXPECT_EQ(test::refusal([&] { preparation(*method, trainer.method())(row); }),
            "a.jsonl:1: a row of kind text is not for this trainer_type\n"
            "    give prompt + chosen + rejected; or set trainer_type: " +
                methods_of(data::RowKind::text));
}

}  // namespace
}  // namespace easydel::train
