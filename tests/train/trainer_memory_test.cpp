// What the trainer announces of its memory. scripts/memory_line.py compares it with the peak of whole processes.
#include <gtest/gtest.h>

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
    if (attention == ops::AttentionMechanism::vanilla)
      EXPECT_GT(memory.activations.per_pair, scores);
    else
      EXPECT_LT(memory.activations.per_pair, scores / 10);
    EXPECT_GT(memory.activations.last_layer, 0);
  }
}

}  // namespace
}  // namespace easydel::train
