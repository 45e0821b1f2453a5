// What mixture.save writes of a method's examples is read back as the same examples.
#include <gtest/gtest.h>

#include "easydel/data/columnar.h"
#include "easydel/train/trainer.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

struct Saved {
  std::string name;
  std::string trainer;  // keys
  std::string rows;
  std::string inform = {};   // keys
  std::string mixture = {};  // keys
  std::string reading = {};  // keys of the trainer that reads them, instead
};

void PrintTo(const Saved& given, std::ostream* out) { *out << given.name; }

const char* const pairs =
    R"({"prompt": "One day, Max", "chosen": " saw a hat.", "rejected": " ran away and was very sad."}
{"prompt": "The dog", "chosen": " was happy to see the girl and her mom.", "rejected": " ate."}
{"prompt": "Once upon a time there was a very long story", "chosen": " about a cat.", "rejected": " about a big red hat."}
)";
const char* const scored =
    R"({"prompt": "One day, Max", "chosen": " saw a hat.", "rejected": " ran away.", "margin": 0.1}
{"prompt": "The dog", "chosen": " was happy.", "rejected": " ate.", "margin": 2}
)";
const char* const gold =
    R"({"prompt": "One day, Max", "chosen": " saw a hat.", "rejected": " ran.", "reference": " saw the red hat."}
{"prompt": "The dog", "chosen": " was happy.", "rejected": " ate.", "reference": " was there."}
)";
const char* const marked =
    R"({"prompt": "One day, Max", "completion": " saw a hat.", "label": true}
{"prompt": "The dog", "completion": " ate everything that was there and more of it.", "label": false}
{"prompt": "A girl", "completion": " ran.", "label": true}
)";
const char* const weighted =
    R"({"text": "Once upon a time there was a dog.", "w": 1}
{"text": "Max saw a hat.", "w": 0.3}
{"text": "The dog ran and ran until it was very tired.", "w": 2.5}
)";
const char* const talk =
    R"({"messages": [{"role": "user", "content": "How did Max feel?"}, {"role": "assistant", "content": "Mad.", "weight": 0}, {"role": "user", "content": "Really?"}, {"role": "assistant", "content": [{"type": "text", "text": "No, "}, {"type": "text", "text": "happy.", "weight": 0.7}]}]}
{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}
)";

class SavedRows : public testing::TestWithParam<Saved> {
 protected:
  std::shared_ptr<data::Dataset> dataset(const std::string& trainer, const std::string& mixture) const {
    TrainerSection section;
    data::MixtureConfig data;
    const bool limited = trainer.find("max_length") != std::string::npos;
    config::read(parse_yaml(str("{", limited ? "" : "max_length: 40, ", trainer, "}")), section, "trainer")
        .throw_if_any();
    config::read(parse_yaml(mixture), data, "mixture").throw_if_any();
    return build_dataset(section, data, text::Tokenizer::load(test::test_data("models/stories260K-chat")));
  }
  std::string file(const char* name) const { return (folder_ / name).string(); }
  const test::TemporaryFolder folder_;
};

void expect_equal(const data::Dataset& source, const data::Dataset& saved) {
  if (source.report().packing.rows == 0) {  // else it is about the documents, too
    EXPECT_EQ(saved.fingerprint(), source.fingerprint());
  }
  ASSERT_EQ(saved.examples_count(), source.examples_count());
  for (int64_t i = 0; i < source.examples_count(); ++i) {
    const data::Example a = source.at(i), b = saved.at(i);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.lengths, b.lengths);
    ASSERT_EQ(a.columns.size(), b.columns.size()) << "example " << i;
    for (const data::Column& column : a.columns) {
      const data::Column* const found = b.find(column.name);
      ASSERT_NE(found, nullptr) << column.name;
      EXPECT_EQ(found->values, column.values) << column.name;
    }
  }
}

TEST_P(SavedRows, AreReadBackAsTheSameExamples) {
  const Saved& given = GetParam();
  test::write_file(folder_ / "rows.jsonl", given.rows);
  for (const char* form : {"jsonl", "json", "parquet", "arrow"}) {
    const bool columns = form[0] == 'p' || form[0] == 'a';
    if (columns && !data::columnar_library_is_there()) continue;
    const auto source =
        dataset(given.trainer, str("{informs: [{data_files: ", file("rows.jsonl"), given.inform, "}]", given.mixture,
                                   ", save: {path: ", file(form), ", format: ", form, "}}"));
    const auto saved = dataset(given.reading.empty() ? given.trainer : given.reading,
                               str("{informs: [{data_files: ", file(form), "}]}"));
    expect_equal(*source, *saved);
  }
}

// With `what: rows` a run from the rows has the same examples, too.
TEST_P(SavedRows, AreMadeAgainFromTheirRows) {
  const Saved& given = GetParam();
  test::write_file(folder_ / "rows.jsonl", given.rows);
  for (const char* form : {"jsonl", "json", "parquet", "arrow"}) {
    const bool columns = form[0] == 'p' || form[0] == 'a';
    if (columns && !data::columnar_library_is_there()) continue;
    const auto source =
        dataset(given.trainer, str("{informs: [{data_files: ", file("rows.jsonl"), given.inform, "}]", given.mixture,
                                   ", save: {what: rows, path: ", file(form), ", format: ", form, "}}"));
    const auto saved =
        dataset(given.trainer, str("{informs: [{data_files: ", file(form), given.inform, "}]", given.mixture, "}"));
    expect_equal(*source, *saved);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Methods, SavedRows,
    testing::Values(
        Saved{"sft_weights", "trainer_type: sft", weighted, ", weight_field: w"},
        Saved{"sft_messages", "trainer_type: sft", talk},
        Saved{"sft_split_documents", "trainer_type: sft, packing: true, packing_strategy: wrapped, max_length: 8",
              weighted, ", weight_field: w", "", "trainer_type: sft"},
        Saved{"sft_unshifted", "trainer_type: sft, loss_config: {shift_tokens: false}", weighted, ", weight_field: w"},
        Saved{"sft_unshifted_masks", "trainer_type: sft, loss_config: {shift_tokens: false}", talk},
        Saved{"cpo_read_with_more_room", "trainer_type: cpo, max_completion_length: 3", pairs, "", "",
              "trainer_type: cpo"},
        Saved{"dpo", "trainer_type: dpo, max_prompt_length: 6, max_completion_length: 5", pairs},
        Saved{"cpo", "trainer_type: cpo, max_completion_length: 5", pairs},
        Saved{"tpo", "trainer_type: tpo, tpo_alpha: 1", gold}, Saved{"kto_of_marks", "trainer_type: kto", marked},
        Saved{"kto_of_pairs", "trainer_type: kto", pairs}, Saved{"bco", "trainer_type: bco, max_length: 12", marked},
        Saved{"reward", "trainer_type: reward", scored}),
    [](const auto& info) { return info.param.name; });

// Functions, formats and several sources: a run from the rows needs none of these keys, and its weights are the same
// bits.
TEST(SavedRowsOfARun, TrainTheSameWeights) {
  if (!data::columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  const test::TemporaryFolder folder;
  test::write_file(folder / "talk.jsonl", talk);
  test::write_file(folder / "stories.jsonl", R"({"story": "One day, Max saw a hat.", "stars": 3, "by": "A"}
{"story": "The dog ran and ran.", "stars": 1, "by": "B"}
{"story": "The girl was happy to see her mom.", "stars": 5, "by": "C"}
)");
  test::write_file(folder / "tasks.jsonl", R"({"task": "Tell a story.", "answer": "Once upon a time there was a dog."}
{"task": "Say hi.", "answer": "Hi."}
)");
  const auto trained = [&](const std::string& mixture, const char* name) {
    train::TrainerParts parts = test::small_run(
        folder.path(), str("{model_name: ", name, ", max_training_steps: 4, num_train_epochs: 4}"), mixture);
    parts.tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
    Trainer trainer(std::move(parts));
    trainer.run();
    return test::weights_of(trainer.model());
  };
  const std::string out = (folder / "rows").string();
  const std::string source =
      str("{informs: [{data_files: ", (folder / "talk.jsonl").string(),
          "}, {data_files: ", (folder / "stories.jsonl").string(),
          R"(, content_field: tale, filter: "{{ stars > 2 }}", map: {tale: "{{ story }} {{ by }}"}}, {data_files: )",
          (folder / "tasks.jsonl").string(),
          ", format: alpaca, columns: {instruction: task, output: answer}}], save: {what: rows, path: ", out);
  const std::string weights = trained(source + "}}", "source");
  EXPECT_EQ(trained("{informs: [{data_files: " + out + "}]}", "parquet"), weights);
  EXPECT_EQ(trained(source + "_lines, format: jsonl}}", "again"), weights);
  EXPECT_EQ(trained("{informs: [{data_files: " + out + "_lines}]}", "jsonl"), weights);
}

}  // namespace
}  // namespace easydel::train
