// Training from what mixture.save wrote gives the same bytes as training from its source; weights in the loss.
#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

class TrainedWeights : public testing::Test {
 protected:
  TrainedWeights() {
    test::fs::create_directory_symlink(test::test_data("models/stories260K-hf"), folder_ / "model");
    test::fs::create_directory_symlink(test::test_data("models/stories260K-chat"), folder_ / "chat");
  }
  // The bytes of the weights after three updates on these rows.
  std::string trained(const std::string& rows, const std::string& inform, const std::string& mixture = "",
                      const std::string& trainer = "") const {
    const std::string name = str("run", ++runs_);
    if (!rows.empty()) test::write_file(folder_ / "rows.jsonl", rows);
    test::write_file(folder_ / "run.yaml",
                     str("model: {name_or_path: model, tokenizer: chat}\nmixture: {informs: [{data_files: ",
                         inform.empty() ? "rows.jsonl" : inform, "}]", mixture, "}\ntrainer: {save_directory: ", name,
                         ", total_batch_size: 2, max_length: 32, max_training_steps: 3, learning_rate: 1e-2", trainer,
                         "}\nactions: [train]\n"));
    const test::Ran ran = test::run_program({"--quiet", "run", "run.yaml"}, {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.status == 0 ? test::read_file(folder_ / name / "model/run-3/model.safetensors") : ran.err;
  }
  test::TemporaryFolder folder_;
  mutable int runs_ = 0;
};

std::string answers(const std::string& more = "") {
  std::string out;
  for (const char* name : {"Max", "Lily", "Tom", "Anna", "Sue"})
    out += str("{\"prompt\": \"One day, ", name, "\", \"completion\": \" saw a warm hat in the river.\"", more, "}\n");
  return out;
}

TEST_F(TrainedWeights, AreTheSameFromWhatWasSaved) {
  const std::string from_source = trained(answers(), "", ", save: {output_path: saved, format: parquet}");
  EXPECT_EQ(trained("", "saved/*.parquet"), from_source);
  const char* const packed = ", pack_tokens: true, pack_seq_length: 20";
  const std::string packed_source = trained(answers(), "", str(packed, ", save: {output_path: packed, format: jsonl}"));
  EXPECT_NE(packed_source, from_source);
  const std::string line = test::read_file(folder_ / "packed/train-00000-of-00001.jsonl");
  EXPECT_NE(line.find("\"next_labels\""), std::string::npos) << "documents are split over rows: " << line;
  EXPECT_EQ(trained("", "packed/*.jsonl"), packed_source);
}

TEST_F(TrainedWeights, DoNotChangeIfAllRowsWeighTwice) {
  const std::string plain = trained(answers(), "");
  EXPECT_EQ(trained(answers(", \"w\": 1"), "rows.jsonl, weight_field: w"), plain);
  EXPECT_EQ(trained(answers(", \"w\": 2"), "rows.jsonl, weight_field: w"), plain);
  EXPECT_EQ(trained(answers(", \"w\": 0.25"), "rows.jsonl, weight_field: w", "", ", gradient_accumulation_steps: 2"),
            trained(answers(), "", "", ", gradient_accumulation_steps: 2"));
}

std::string talks(const char* marks, const char* other) {
  std::string out;
  for (const char* name : {"Max", "Lily", "Tom"})
    out += str("{\"messages\": [{\"role\": \"user\", \"content\": \"How did ", name,
               " feel?\"}, {\"role\": \"assistant\", \"content\": \"Kind.\"", marks,
               "}, {\"role\": \"user\", \"content\": \"And now?\"}, {\"role\": \"assistant\", \"content\": \"Warm.\"",
               other, "}]}\n");
  return out;
}

TEST_F(TrainedWeights, OfZeroAreAMask) {
  const char* const masked = ", assistant_only_loss: true";
  const std::string by_train = trained(talks(", \"train\": false", ""), "", "", masked);
  EXPECT_EQ(trained(talks(", \"weight\": 0", ", \"weight\": 3"), "", "", masked).size(), by_train.size());
  EXPECT_EQ(trained(talks(", \"weight\": 0", ", \"weight\": 1"), "", "", masked), by_train);
  EXPECT_EQ(trained(talks("", ""), "rows.jsonl, train_on_turns: last"), by_train);
  EXPECT_NE(trained(talks("", ""), "", "", masked), by_train);
  EXPECT_NE(trained(talks(", \"weight\": 0.5", ""), "", "", masked), trained(talks("", ""), "", "", masked));
}

}  // namespace
}  // namespace easydel
