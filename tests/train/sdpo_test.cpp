// trainer_type: sdpo: a step by the written formula, in doubles.
#include "easydel/train/sdpo.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/train/sequence_logps.h"
#include "train/sampled_run.h"

namespace easydel::train {
namespace {

TEST(Sdpo, TellsWhatWasRightAndABetterCompletion) {
  EXPECT_EQ(feedback_on(true, "x"), "Your previous attempt was correct.\n");
  EXPECT_EQ(feedback_on(false, "It is 4."), "Correct solution:\nIt is 4.\n\nCorrectly solve the original question.\n");
  EXPECT_EQ(feedback_on(false, ""), "Correctly solve the original question.\n");
  EXPECT_EQ(feedback_on(true, "x", "Well done."),
            "Your previous attempt was correct.\nFeedback on your previous attempt:\nWell done.\n");
  EXPECT_EQ(feedback_on(false, "It is 4.", "Off by one."),
            "Correct solution:\nIt is 4.\n\nFeedback on your previous attempt:\nOff by one.\n\nCorrectly solve the "
            "original question.\n");
}

struct Step {
  std::vector<Value> sampled;
  double loss = 0, norm = 0, advantage = 0;
};

Step first_step(const std::filesystem::path& folder, const std::string& keys) {
  const test::LogLines log;
  std::string rows;
  for (const char* prompt : {"Once upon a time", "One day", "The cat", "Tom and"})
    rows += str("{\"prompt\": \"", prompt, "\"}\n");
  test::write_file(folder / "prompts.jsonl", rows);
  const std::string all =
      "{trainer_type: sdpo, rewards: [{type: contains, words: [the]}], total_batch_size: 8, num_return_sequences: 4, "
      "gradient_accumulation_steps: 2, max_completion_length: 12, temperature: 1.0, top_k: 0, top_p: 1, learning_rate: "
      "1e-3, clip_grad: 1000, max_prompt_length: 16, shuffle_train_dataset: false, max_training_steps: 1, " +
      keys + "}";
  Trainer trained(
      test::small_run(folder, all, "{informs: [{data_files: \"" + (folder / "prompts.jsonl").string() + "\"}]}"));
  trained.run();
  Step out;
  out.sampled = test::json_lines(folder / "out/small/rollouts.jsonl");
  out.loss = test::metric(folder / "out/small", "loss").at(0);
  out.norm = test::metric(folder / "out/small", "grad_norm").at(0);
  out.advantage = test::metric(folder / "out/small", "sdpo/advantage_mean").at(0);
  return out;
}

// The same from what was sampled: log-probabilities of each completion alone, sums in doubles.
Step expected_step(const std::vector<Value>& sampled, bool jsd, int64_t most) {
  models::LoadOptions load;
  load.dtype = load.param_dtype = models::DTypeSetting::fp32;
  load.training = true;
  const auto folder = test::test_data("models/stories260K-hf");
  const auto model = models::load_model(folder, load);
  const auto tokenizer = text::Tokenizer::load(folder);
  const auto logps = [&](const std::vector<int32_t>& prompt, const std::vector<int32_t>& ids) {
    const data::Example example = learned_example(prompt, ids);
    const data::Example* const one = &example;
    Forwarding how;
    how.training = false;
    return score_sequences(*model, flat_batch({&one, 1}), how, {}).logps;
  };
  int64_t tokens = 0;
  for (const Value& one : sampled) tokens += std::ssize(one.find("ids")->items);
  Step out;
  Tensor sum;
  for (size_t i = 0; i < sampled.size(); ++i) {
    const auto reward = [&](size_t k) { return *sampled[k].find("rewards")->find("contains")->as_double(); };
    std::string solution;
    for (size_t k = i / 4 * 4; k < i / 4 * 4 + 4 && solution.empty(); ++k)
      if (reward(k) > 0) solution = sampled[k].find("completion")->scalar;
    std::vector<int32_t> ids, prompt = tokenizer->encode(sampled[i].find("prompt")->scalar);
    for (const Value& id : sampled[i].find("ids")->items) ids.push_back(int32_t(*id.as_int()));
    std::vector<int32_t> context = prompt;
    std::vector<int32_t> feedback =
        tokenizer->encode(feedback_on(reward(i) > 0, solution), {.add_special_tokens = false});
    feedback.resize(std::min(feedback.size(), size_t(most)));
    context.insert(context.end(), feedback.begin(), feedback.end());
    const Tensor own = logps(prompt, ids), teacher = logps(context, ids).detach();
    for (int64_t t = 0; t < own.size(0); ++t) {
      const double s = own[t].item<double>(), p = teacher[t].item<double>();
      const double target = jsd ? std::log((std::exp(s) + std::exp(p)) / 2) : p;
      out.loss += (s - target) * s / double(tokens);
      out.advantage += (p - s) / double(tokens);
      const Tensor term = own[t] * ((s - target) / double(tokens));
      sum = sum.defined() ? sum + term : term;
    }
  }
  sum.backward();
  double squares = 0;
  for (const nn::Entry& entry : model->parameters().entries())
    if (entry.shard.grad().defined()) squares += std::pow(at::linalg_vector_norm(entry.shard.grad()).item<double>(), 2);
  out.norm = std::sqrt(squares);
  return out;
}

TEST(Sdpo, LearnsFromItselfWithFeedback) {
  for (const auto& [keys, jsd, most] :
       {std::tuple{"distillation_type: kl", false, 256}, std::tuple{"max_feedback_length: 9", true, 9}}) {
    SCOPED_TRACE(keys);
    const test::TemporaryFolder folder;
    const Step ours = first_step(folder.path(), keys);
    ASSERT_EQ(ours.sampled.size(), 8u);
    const Step expected = expected_step(ours.sampled, jsd, most);
    EXPECT_NEAR(ours.loss, expected.loss, 2e-5 * std::abs(expected.loss));
    EXPECT_NEAR(ours.norm, expected.norm, 1e-4 * expected.norm);
    EXPECT_NEAR(ours.advantage, expected.advantage, 1e-4 * std::abs(expected.advantage));
  }
}

// A program of trainer.rewards writes it: what the model then sees, and with it the loss, is another.
TEST(Sdpo, ShowsTheFeedbackOfAProgram) {
  const auto loss_with = [](const std::string& more) {
    const test::LogLines log;
    const test::TemporaryFolder folder;
    test::write_file(folder / "prompts.jsonl", "{\"prompt\": \"One day\"}\n");
    test::write_file(folder / "judge.sh",
                     "while read line; do id=$(echo \"$line\" | sed 's/.*\"id\": *\\([0-9]*\\).*/\\1/'); echo "
                     "\"{\\\"id\\\": $id, \\\"reward\\\": 0" +
                         more + "}\"; done\n");
    TrainerParts parts = test::small_run(
        folder.path(),
        "{trainer_type: sdpo, rewards: [{type: program, command: [sh, \"" + (folder / "judge.sh").string() +
            "\"]}], total_batch_size: 2, num_return_sequences: 2, max_completion_length: 8, max_prompt_length: 16, "
            "temperature: 1.0, max_training_steps: 1}",
        "{informs: [{data_files: \"" + (folder / "prompts.jsonl").string() + "\"}]}");
    return Trainer(std::move(parts)).run().train_loss;
  };
  const double silent = loss_with("");
  EXPECT_EQ(loss_with(", \\\"feedback\\\": null"), silent);
  EXPECT_NE(loss_with(", \\\"feedback\\\": \\\"Say more.\\\""), silent);
  EXPECT_NE(test::refusal([&] {
              loss_with(", \\\"feedback\\\": 3");
            }).find("answered feedback that is neither a text nor null"),
            std::string::npos);
}

// Stops the run after each step.
struct Stopping : Watcher {
  explicit Stopping(std::filesystem::path file) : file(std::move(file)) {}
  void stepped(const StepReport&) override { test::write_file(file, ""); }
  std::filesystem::path file;
};

// The window with its second sequences is kept in the checkpoint.
TEST(Sdpo, GoesOnInsideOfAWindow) {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  test::write_file(folder / "prompts.jsonl", "{\"prompt\": \"One day\"}\n{\"prompt\": \"The cat\"}\n");
  const auto run = [&](const std::string& name, bool stops) {
    TrainerParts parts = test::small_run(
        folder.path(),
        "{trainer_type: sdpo, beta: 0.1, rewards: [{type: contains, words: [the]}], total_batch_size: 4, "
        "num_return_sequences: 2, num_iterations: 2, max_completion_length: 8, max_prompt_length: 16, temperature: "
        "1.0, "
        "learning_rate: 1e-3, shuffle_train_dataset: false, num_train_epochs: 4, max_training_steps: 4, model_name: " +
            name + "}",
        "{informs: [{data_files: \"" + (folder / "prompts.jsonl").string() + "\"}]}");
    Stopping watcher(folder / ("out/" + name) / "stop");
    if (stops) parts.watcher = &watcher;
    return Trainer(std::move(parts)).run().step;
  };
  EXPECT_EQ(run("whole", false), 4);
  for (int64_t step = 1; step <= 4; ++step) EXPECT_EQ(run("cut", true), step);
  EXPECT_EQ(test::metric(folder / "out/whole", "loss").size(), 4u);
  EXPECT_EQ(test::metric(folder / "out/whole", "loss"), test::metric(folder / "out/cut", "loss"));
}

}  // namespace
}  // namespace easydel::train
