// What the trainer announces of its memory. scripts/memory_line.py compares it with the peak of whole processes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "easydel/tensor/memory.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

TEST(TrainerMemory, IsMeasuredAndChangesNothing) {
  tensor::use_kept_memory();
  const test::TemporaryFolder folder;
  const test::LogLines log;
  TrainerParts parts = test::small_run(folder.path(), "{max_training_steps: 1, total_batch_size: 8}");
  const std::shared_ptr<models::Model> model = parts.model;
  const std::string before = test::weights_of(*model);
  Trainer trainer(std::move(parts));
  EXPECT_EQ(test::weights_of(*model), before);
  for (const nn::Entry& entry : model->parameters().entries()) EXPECT_FALSE(entry.shard.grad().defined()) << entry.path;

  const MemoryPlan& memory = trainer.plan().memory;
  EXPECT_GT(memory.tokens, trainer.plan().longest);
  EXPECT_EQ(memory.gradients, 4 * trainer.plan().parameters);
  EXPECT_GT(memory.total(), memory.weights + memory.optimizer + memory.rest);
  // A step needs what was said of activations, and gradients that come while they go.
  const tensor::PeakWatch watch;
  trainer.run();
  const auto least = double(memory.first_gradient + memory.activation_bytes());
  EXPECT_GT(double(watch.bytes()), 0.8 * least);
  EXPECT_LT(double(watch.bytes()), 1.2 * least + double(memory.gradients));
}

int64_t pages_in_use(int field) {  // of /proc/self/statm: 0 of the address space, 1 in memory
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  for (int i = 0; i <= field; ++i) file >> pages;
  return pages * int64_t(sysconf(_SC_PAGESIZE));
}

// While one lives, this process gets so many more bytes of address space, as under `ulimit -v`.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(int64_t more) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = rlim_t(pages_in_use(0) + more);
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  rlimit before_ = {};
};

// The plan is made from the loaded model and the longest micro-batch; only a few tokens of that are computed.
TEST(TrainerMemory, RefusesARunThatDoesNotFitAndNamesWhatWould) {
  tensor::use_kept_memory();
  const test::TemporaryFolder folder;
  const test::LogLines log;
  std::string lines;
  for (int i = 0; i < 128; ++i) {
    for (int word = 0; word < 300; ++word) lines += str("ball ", (i * word) % 7, " ");
    lines += "\n";
  }
  test::write_file(folder / "lines.txt", lines);
  const std::string fits = "(nothing was refused)";
  const auto refused = [&](const std::string& accumulation, std::optional<int64_t> more, MemoryPlan* plan) {
    TrainerParts parts =
        test::small_run(folder.path(), str("{max_training_steps: 1, total_batch_size: 128, max_length: 512, "
                                           "gradient_accumulation_steps: ",
                                           accumulation, "}"));
    std::optional<AddressSpaceLimit> limit;
    if (more) limit.emplace(*more);
    return test::refusal([&] {
      const Trainer trainer(std::move(parts));
      if (plan) *plan = trainer.plan().memory;
    });
  };
  MemoryPlan plan;
  ASSERT_EQ(refused("1", std::nullopt, &plan), fits);
  const int64_t more = plan.total() - pages_in_use(1);  // than this process has now
  ASSERT_GT(plan.activation_bytes(), int64_t{512} << 20);
  EXPECT_EQ(refused("1", more * 5 / 4, nullptr), fits);
  for (const auto& [share, micro_batches] : {std::pair(0.7, "2"), std::pair(0.4, "4")}) {
    const int64_t less = int64_t(share * double(more));
    const std::string told = refused("1", less, nullptr);
    EXPECT_TRUE(told.starts_with("memory: the run needs about ")) << told;
    EXPECT_NE(told.find("; ulimit -v leaves "), std::string::npos) << told;
    const std::string key = str("this would fit: trainer.gradient_accumulation_steps: ", micro_batches, ";");
    EXPECT_NE(told.find(key), std::string::npos) << told;
    EXPECT_EQ(refused(micro_batches, less, nullptr), fits) << "what was said to fit does";
  }
}

// What a step on completions keeps is measured before any is sampled.
TEST(TrainerMemory, RefusesSamplesThatDoNotFitAndNamesTheirKeys) {
  tensor::use_kept_memory();
  const test::TemporaryFolder folder;
  const test::LogLines log;
  std::string lines;
  for (int i = 0; i < 32; ++i) lines += str("{\"prompt\": \"One day ", i, "\"}\n");
  test::write_file(folder / "prompts.jsonl", lines);
  const auto refused = [&](std::optional<int64_t> more, MemoryPlan* plan) {
    TrainerParts parts = test::small_run(
        folder.path(),
        "{trainer_type: grpo, beta: 0, max_training_steps: 1, total_batch_size: 256, num_return_sequences: 8, "
        "max_completion_length: 400, rewards: [{type: repetition}]}",
        "{informs: [{data_files: \"" + (folder / "prompts.jsonl").string() + "\"}]}");
    std::optional<AddressSpaceLimit> limit;
    if (more) limit.emplace(*more);
    return test::refusal([&] {
      const Trainer trainer(std::move(parts));
      if (plan) *plan = trainer.plan().memory;
    });
  };
  MemoryPlan plan;
  ASSERT_EQ(refused(std::nullopt, &plan), "(nothing was refused)");
  ASSERT_GT(plan.activation_bytes(), int64_t{512} << 20);
  const std::string told = refused((plan.total() - pages_in_use(1)) * 2 / 3, nullptr);
  EXPECT_TRUE(told.starts_with("memory: the run needs about ")) << told;
  EXPECT_NE(told.find("this would fit: trainer.gradient_accumulation_steps: 2;"), std::string::npos) << told;
  EXPECT_NE(told.find("; or trainer.max_completion_length: 200"), std::string::npos) << told;
  EXPECT_EQ(told.find("trainer.max_length"), std::string::npos) << told;
}

TEST(TrainerMemory, CountsTheScoresThatAttentionKeeps) {
  tensor::use_kept_memory();
  const test::TemporaryFolder folder;
  const test::LogLines log;
  for (const ops::AttentionMechanism attention :
       {ops::AttentionMechanism::automatic, ops::AttentionMechanism::vanilla}) {
    TrainerParts parts = test::small_run(folder.path(), "{max_training_steps: 1, total_batch_size: 8}");
    parts.load.attention = attention;
    parts.model = models::load_model(test::test_data("models/stories260K-hf"), parts.load);
    const Trainer trainer(std::move(parts));
    const MemoryPlan& memory = trainer.plan().memory;
    EXPECT_GT(memory.pairs, memory.tokens);
    const double scores = 4 * 8 * 5;  // fp32, of 8 heads in 5 layers
    if (attention == ops::AttentionMechanism::vanilla) {
      EXPECT_GE(memory.activations.per_pair, scores);
      EXPECT_LT(memory.activations.per_pair, scores * 1.25);
      EXPECT_GT(memory.activations.per_longest_pair, scores / 5) << "what the backward of one sequence's scores needs";
    } else {
      EXPECT_EQ(memory.activations.per_pair + memory.activations.per_longest_pair, 0);
    }
    EXPECT_GT(memory.activations.last_layer, 0);
  }
}

// A table of positions ends where the model's texts do.
TEST(TrainerMemory, IsMeasuredWithNoMoreTokensThanTheModelHasPositions) {
  tensor::use_kept_memory();
  const test::TemporaryFolder folder;
  const test::LogLines log;
  test::write_file(folder / "model/config.json",
                   R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 512, "n_embd": 32,
                       "n_layer": 2, "n_head": 2, "n_positions": 48})");
  TrainerParts parts = test::small_run(folder.path(), "{max_training_steps: 1, max_length: 48}");
  parts.model = models::load_model(folder / "model", parts.load);
  Trainer trainer(std::move(parts));
  EXPECT_GT(trainer.plan().memory.activations.per_token, 0);
  trainer.run();
}

TEST(TrainerMemory, CountsWhatCompletionsNeed) {
  const test::TemporaryFolder folder;
  const test::LogLines log;
  test::write_file(folder / "prompts.jsonl", "{\"prompt\": \"One day\"}\n{\"prompt\": \"Tom and Lily\"}\n");
  TrainerParts parts = test::small_run(
      folder.path(),
      "{trainer_type: online_dpo, max_training_steps: 1, total_batch_size: 8, gradient_accumulation_steps: 2, "
      "max_prompt_length: 8, max_completion_length: 12, rewards: [{type: repetition}]}",
      "{informs: [{data_files: \"" + (folder / "prompts.jsonl").string() + "\"}]}");
  const Sampler sampler(parts.model, parts.tokenizer);
  const Trainer trainer(std::move(parts));
  const MemoryPlan& memory = trainer.plan().memory;
  const int64_t longest = trainer.plan().longest + 12;
  EXPECT_EQ(memory.completions, sampler.memory_bytes(16, longest)) << "two of each of the 8 prompts";
  EXPECT_EQ(memory.tokens, 8 * longest) << "of a micro-batch of 4 pairs";
  EXPECT_EQ(memory.labelled, 8 * 12);
  EXPECT_GT(memory.activation_bytes(), 0);
  EXPECT_GT(memory.panels, 0);
  EXPECT_NE(memory.text().find(", packed weights "), std::string::npos) << memory.text();
}

}  // namespace
}  // namespace easydel::train
