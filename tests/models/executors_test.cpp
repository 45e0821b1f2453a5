// Models on executors of their own: which threads run a model's kernels decides no bit of its outputs and gradients.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "easydel/models/model.h"
#include "easydel/tensor/executor.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::models {
namespace {

// A model of tests/data/hf_goldens with a text that it can read.
struct Example {
  std::shared_ptr<Model> model;
  Tensor tokens, next;
  bool recomputes;

  Example(const std::string& golden, const char* dtype, bool recomputes) : recomputes(recomputes) {
    const auto folder = test::test_data("hf_goldens/" + golden);
    LoadOptions options;
    options.dtype = dtype_setting(dtype, "dtype");
    options.training = true;
    model = load_model(folder, options);
    const auto expected = weights::SafetensorsFile::open(folder / "expected.safetensors");
    const Tensor row = tensor::from_view(expected->at("input_ids")).to(at::kLong)[0];
    tokens = row.slice(0, 0, row.size(0) - 1).clone(), next = row.slice(0, 1).clone();
  }

  // Scores of the text under "" and the gradient of each parameter under its path.
  std::map<std::string, Tensor> outputs() const {
    nn::Pass pass = nn::Pass::over({0, tokens.size(0)});
    pass.random().training = true;
    pass.random().seed = 3;
    if (recomputes) pass.activations().checkpointing = nn::CheckpointPolicy(nn::Checkpointing::nothing_saveable);
    const Tensor logps = model->head().score(model->forward({tokens}, pass).hidden, next, pass).logps;
    logps.mean().backward();
    std::map<std::string, Tensor> out{{"", logps.detach()}};
    for (const nn::Entry& entry : model->parameters().entries()) {
      if (!entry.shard.grad().defined()) continue;
      out[entry.path] = entry.shard.grad().clone();
      entry.shard.mutable_grad() = Tensor();
    }
    return out;
  }
};

void expect_equal(const std::map<std::string, Tensor>& found, const std::map<std::string, Tensor>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  EXPECT_GT(found.size(), 1u);
  for (const auto& [name, value] : expected) {
    const auto at = found.find(name);
    ASSERT_NE(at, found.end()) << name;
    EXPECT_TRUE(at->second.equal(value)) << (name.empty() ? "scores" : name);
  }
}

struct Pair {
  const char *first, *second, *dtype;
  bool recomputes = false;
};

class TwoExecutors : public testing::TestWithParam<Pair> {};

TEST_P(TwoExecutors, RunTwoModelsSideBySideWithTheBitsThatTheyHaveAlone) {
  const Pair& pair = GetParam();
  const Example first(pair.first, pair.dtype, pair.recomputes), second(pair.second, pair.dtype, pair.recomputes);
  const auto first_alone = first.outputs(), second_alone = second.outputs();

  const auto run = [](const Example& example, int threads, const auto& expected) {
    const auto pool = kernels::make_pool(threads);
    const tensor::UseExecutor use(*pool);
    for (int i = 0; i < 3; ++i) expect_equal(example.outputs(), expected);
  };
  for (const auto& [first_threads, second_threads] : {std::pair{1, 1}, {2, 1}, {2, 3}}) {
    SCOPED_TRACE(std::to_string(first_threads) + " and " + std::to_string(second_threads) + " threads");
    std::thread other([&, threads = second_threads] { run(second, threads, second_alone); });
    run(first, first_threads, first_alone);
    other.join();
  }
}

INSTANTIATE_TEST_SUITE_P(All, TwoExecutors,
                         testing::Values(Pair{"llama", "gemma3_text", "fp32"}, Pair{"qwen3_moe", "qwen3_moe", "bf16"},
                                         Pair{"deepseek_v3", "mamba2", "bf16"}, Pair{"gpt2", "qwen3_next", "fp32"},
                                         Pair{"mixtral", "jamba", "bf16", true}));

// Runs everything on the calling thread and counts.
class Counting final : public kernels::Executor {
 public:
  int size() const override { return 4; }
  std::atomic<int> runs = 0;

 private:
  void run_tasks(int64_t tasks, Call call, void* work) override {
    ++runs;
    for (int64_t i = 0; i < tasks; ++i) call(work, i);
  }
};

TEST(UseExecutor, ServesTheBackwardAndTheRecomputationOfItsThread) {
  const Example example("llama", "fp32", true);
  Counting counting;
  nn::Pass pass = nn::Pass::over({0, example.tokens.size(0)});
  pass.activations().checkpointing = nn::CheckpointPolicy(nn::Checkpointing::nothing_saveable);
  Tensor loss;
  {
    const tensor::UseExecutor use(counting);
    loss = example.model->head()
               .score(example.model->forward({example.tokens}, pass).hidden, example.next, pass)
               .logps.mean();
  }
  const int forward = counting.runs;
  EXPECT_GT(forward, 0);
  {
    const tensor::UseExecutor use(counting);
    loss.backward();
  }
  EXPECT_GT(counting.runs, 2 * forward);
}

}  // namespace
}  // namespace easydel::models
