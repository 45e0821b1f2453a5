#include "easydel/train/previews.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include "easydel/data/byte_stream.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

using test::LogLines;
using test::small_run;
using test::TemporaryFolder;

struct SignalAfter : Watcher {
  explicit SignalAfter(int64_t step) : step(step) {}
  void stepped(const StepReport& report) override {
    if (report.step == step) raise(SIGTERM);
  }
  int64_t step;
};

// The weights after the run.
std::string run(TrainerParts parts, int64_t signal_after = 0) {
  SignalAfter watcher(signal_after);
  parts.watcher = &watcher;
  Trainer trainer(std::move(parts));
  trainer.run();
  return test::weights_of(trainer.model());
}

std::vector<Value> lines_of(const std::filesystem::path& file) {
  std::vector<Value> out;
  data::for_each_line(file, [&](std::string_view line, int64_t) {
    out.push_back(parse_json(line));
    return true;
  });
  return out;
}

constexpr const char* previews =
    "max_training_steps: 4, generation_interval: 2, generation_prompts: \"Once upon\", generation_max_new_tokens: 8, "
    "generation_temperature: 0.8, generation_use_train_prompts: true, generation_num_prompts: 2";

TEST(Previews, AreAFunctionOfTheRunAndChangeNothing) {
  const TemporaryFolder folder;
  LogLines log;
  log::set_level(log::Level::info);
  std::string rows;
  for (int i = 0; i < 9; ++i) rows += str(i, " dogs and ", i, " cats had red balls and hats.\n");
  test::write_file(folder / "lines.txt", rows);
  const std::string plain = run(small_run(folder.path(), "{max_training_steps: 4, model_name: plain}"));
  const std::string with = run(small_run(folder.path(), str("{", previews, ", tensorboard: true}")));
  EXPECT_EQ(with, plain);
  const std::string file = test::read_file(folder / "out/small/previews.jsonl");
  const auto lines = lines_of(folder / "out/small/previews.jsonl");
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0].find("prompt")->scalar, "<s> Once upon");
  EXPECT_EQ(lines[0].find("step")->as_int(), 2);
  EXPECT_LE(*lines[0].find("new_tokens")->as_int(), 8);
  EXPECT_NE(lines[1].find("prompt")->scalar, lines[2].find("prompt")->scalar);
  EXPECT_NE(lines[1].find("prompt")->scalar, lines[4].find("prompt")->scalar) << "other ones each time";
  EXPECT_TRUE(log.has("preview after step 2: <s> Once upon => ")) << log.text;
  EXPECT_NE(test::read_file(folder / "out/small/events.out.tfevents.0.easydel").find("Once upon"), std::string::npos);

  const std::string cut = str("{", previews, ", model_name: cut}");
  run(small_run(folder.path(), cut), 2);
  run(small_run(folder.path(), cut));
  EXPECT_EQ(test::read_file(folder / "out/cut/previews.jsonl"), file);
}

TEST(Previews, SayWhatTheyNeed) {
  const TemporaryFolder folder;
  EXPECT_EQ(test::refusal([&] { small_run(folder.path(), "{generation_interval: 2}"); }),
            "trainer:1:23: generation_interval: there is no prompt to generate from\n"
            "    give generation_prompts, or generation_use_train_prompts: true\n"
            "1 problem in trainer; nothing was run.");
  EXPECT_EQ(test::refusal([&] { small_run(folder.path(), "{generation_interval: 2, generation_prompts: [3]}"); }),
            "trainer:1:46: generation_prompts: 3 is neither a text nor a list of messages\n"
            "    for example [\"Once upon a time\", [{role: user, content: Hello}]]\n"
            "1 problem in trainer; nothing was run.");
}

TEST(HeldOutLoss, IsReportedAsPerplexityAndBitsPerByte) {
  const TemporaryFolder folder;
  LogLines log;
  const std::string text = "Once upon a time there was a bird who had 9 red balls.";
  test::write_file(folder / "held_out.txt", text + "\n");
  for (const char* packing : {"", ", packing: true"}) {
    run(small_run(folder.path(), str("{max_training_steps: 1, do_eval: true, resume_if_possible: false", packing, "}"),
                  str("{evaluation: [{data_files: \"", (folder / "held_out.txt").string(), "\"}]}")));
    const Value record = lines_of(folder / "out/small/metrics.jsonl").back();
    const auto number = [&](const char* key) { return record.find(key)->as_double().value_or(NAN); };
    EXPECT_NEAR(number("eval_perplexity"), std::exp(number("eval_loss")), 1e-5 * number("eval_perplexity"));
    // BOS is no label; the last token is EOS, which has no bytes.
    const double labels = number("eval_tokens") - 1, bytes = double(text.size());
    EXPECT_NEAR(number("eval_bits_per_byte"), number("eval_loss") * labels / std::log(2.0) / bytes,
                1e-5 * number("eval_bits_per_byte"));
  }
}

}  // namespace
}  // namespace easydel::train
