// trainer_type: agentic_moshpit: its advantages by the written formulas, its programs, and whole runs.
#include <gtest/gtest.h>

#include <ATen/ops/tensor.h>

#include <cmath>

#include "easydel/base/files.h"
#include "easydel/data/byte_stream.h"
#include "easydel/train/environment.h"
#include "easydel/train/episode_advantages.h"
#include "easydel/train/shared_environment.h"
#include "support/ranks.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;

std::vector<double> list_of(const Tensor& values) {
  std::vector<double> out;
  for (int64_t i = 0; i < values.numel(); ++i) out.push_back(values[i].item<double>());
  return out;
}

std::vector<double> scaled(const std::vector<double>& group, bool sample_deviation) {
  double mean = 0, squares = 0;
  for (const double x : group) mean += x / double(group.size());
  for (const double x : group) squares += (x - mean) * (x - mean);
  const double deviation = std::sqrt(squares / double(group.size() - (sample_deviation ? 1 : 0)));
  std::vector<double> out;
  for (const double x : group) out.push_back((x - mean) / ((deviation == 0 ? 1 : deviation) + 1e-4));
  return out;
}

TEST(EpisodeAdvantages, AreThoseOfTheFormulas) {
  RewardTable table;
  table.names = {"environment", "format"};
  table.weights = {1, 0.5};
  table.group = 3;
  table.turns = {{0, 1}, {0.5}, {0, 0, 2}, {1}, {1}, {1}};
  const std::vector<double> format{1, 0, 2, 0, 0, 0};
  std::vector<double> sums, returns, whole_returns;
  std::vector<float> values;
  for (size_t i = 0; i < 6; ++i) {
    const std::vector<double>& turns = table.turns[i];
    double sum = 0, discounted = 0;
    for (size_t t = 0; t < turns.size(); ++t) sum += turns[t], discounted += std::pow(0.9, double(t)) * turns[t];
    values.push_back(float(sum)), values.push_back(float(format[i]));
    sums.push_back(sum + 0.5 * format[i]);
    returns.push_back(discounted);
    whole_returns.push_back(discounted + std::pow(0.9, double(turns.size() - 1)) * 0.5 * format[i]);
  }
  table.values = at::tensor(at::ArrayRef<float>(values)).view({6, 2});
  AgenticMoshpitKeys keys;
  keys.step_reward_gamma = 0.9;
  keys.episode_reward_weight = 2;
  keys.step_reward_weight = 3;
  const auto grouped = [](const std::vector<double>& all, bool sample) {
    std::vector<double> out = scaled({all.begin(), all.begin() + 3}, sample);
    const std::vector<double> second = scaled({all.begin() + 3, all.end()}, sample);
    out.insert(out.end(), second.begin(), second.end());
    return out;
  };
  const auto expect = [&](AdvantageEstimator estimator, const std::vector<double>& wanted) {
    keys.advantage_estimator = estimator;
    const std::vector<double> found =
        list_of(episode_advantages(table, keys, RewardScale::group, RewardAggregation::sum_then_normalize).values);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], 1e-5) << config::word_of(estimator) << " " << i;
  };
  const std::vector<double> whole = grouped(sums, true), turns = grouped(returns, false);
  std::vector<double> both;
  for (size_t i = 0; i < 6; ++i) both.push_back(2 * whole[i] + 3 * turns[i]);
  expect(AdvantageEstimator::grpo, whole);
  expect(AdvantageEstimator::gigpo, both);
  expect(AdvantageEstimator::reinforce, scaled(sums, false));
  expect(AdvantageEstimator::step_reinforce, grouped(whole_returns, false));
  expect(AdvantageEstimator::agentic_reinforce, grouped(whole_returns, false));
}

EnvironmentConfig shell(const std::string& script) {
  EnvironmentConfig out;
  out.command = {"sh", "-c", script};
  out.timeout_seconds = 5;
  return out;
}

// Answers with the number of the episode that it reads, and ends where `message` is read.
constexpr const char* counting =
    R"(while read -r line; do id=${line#*\"id\": }; id=${id%%,*}; episode=${line#*\"episode\": }; episode=${episode%%,*}
       case "$line" in *message*) done=true;; *) done=false;; esac
       echo "{\"id\": $id, \"messages\": [{\"role\": \"user\", \"content\": \"$$ $episode\"}], \"reward\": 0.25, \"done\": $done}"
       done)";

TEST(ProgramEnvironment, AnswersEachEpisodeByOneWorker) {
  EnvironmentConfig config = shell(counting);
  config.workers = 2;
  const auto environment = build_environment(config);
  const Value row = parse_json(R"({"prompt": "x"})");
  const Value turn = parse_json(R"({"role": "assistant", "content": "y"})");
  const std::vector<Environment::Beginning> begun{{0, row, 1}, {1, row, 1}, {2, row, 2}};
  const auto first = environment->begin(begun);
  const std::vector<Environment::Turn> turns{{1, turn}, {2, turn}};
  const auto second = environment->step(turns);
  ASSERT_EQ(first.size(), 3u);
  ASSERT_EQ(second.size(), 2u);
  const auto said = [](const EnvironmentAnswer& answer) { return answer.messages.at(0).find("content")->scalar; };
  EXPECT_TRUE(said(first[1]).ends_with(" 1"));
  EXPECT_EQ(said(first[1]), said(second[0]));
  EXPECT_EQ(said(first[2]), said(second[1]));
  EXPECT_NE(said(first[0]).substr(0, said(first[0]).find(' ')), said(first[1]).substr(0, said(first[1]).find(' ')));
  EXPECT_FALSE(first[0].done);
  EXPECT_TRUE(second[0].done);
  EXPECT_EQ(second[0].reward, 0.25);
}

TEST(ProgramEnvironment, IsRefusedWithItsLastLine) {
  const auto refused = [](const std::string& script) {
    return test::refusal([&] {
      const Value row = Value::map();
      const std::vector<Environment::Beginning> begun{{0, row, 1}};
      build_environment(shell(script))->begin(begun);
    });
  };
  const std::string where = "trainer.environment: ";
  EXPECT_EQ(refused("read a; echo broken >&2; exit 3"),
            where + "ended with exit status 3 with 1 turns to answer\n    its last line was: broken");
  EXPECT_EQ(refused("echo '{\"id\": 0}'; cat >&2"),
            where + "answered a line without id and messages\n    its last line was: {\"id\": 0}");
  for (const auto& [answer, problem] :
       {std::pair{R"({"id": 0, "messages": "x"})", "answered messages that are not a list"},
        {R"({"id": 0, "messages": [{"role": "user"}]})", "answered a message without a text as role and as content"},
        {R"({"id": 0, "messages": [], "reward": "much"})", "answered a reward that is not a finite number"},
        {R"({"id": 0, "messages": [], "done": 1})", "answered done that is neither true nor false"}})
    EXPECT_EQ(refused(str("echo '", answer, "'; cat >&2")), str(where, problem, "\n    its last line was: ", answer));
}

// Answers on one rank; asked on another one, it fails.
class OneRanks final : public Environment {
 public:
  explicit OneRanks(bool may_be_asked) : may_be_asked_(may_be_asked) {}
  std::vector<EnvironmentAnswer> begin(std::span<const Beginning> episodes) override {
    check(may_be_asked_, "another rank asks");
    std::vector<EnvironmentAnswer> out;
    for (const Beginning& one : episodes) out.push_back({{one.row}, 0.1 * double(one.episode), one.episode == 1});
    return out;
  }
  std::vector<EnvironmentAnswer> step(std::span<const Turn>) override { refuse("here", "it is broken", "mend it"); }

 private:
  bool may_be_asked_;
};

TEST(SharedEnvironment, GivesEveryRankTheAnswersAndErrorsOfTheFirst) {
  test::run_ranks(2, [](const test::Meeting& meeting) {
    collective::TeamOptions options;
    options.file_store = meeting.file;
    const auto team = collective::Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), {2, 1, 1, 1, 1}), options);
    SharedEnvironment environment(std::make_unique<OneRanks>(team->first()), team->all());
    const Value row = parse_json(R"({"role": "user", "content": "\u00e4 \"1\""})");
    const std::vector<Environment::Beginning> begun{{0, row, 1}, {1, row, 1}};
    const std::vector<EnvironmentAnswer> answers = environment.begin(begun);
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(answers[1].messages.at(0), row);
    EXPECT_EQ(answers[1].reward, 0.1);
    EXPECT_TRUE(answers[1].done && !answers[0].done);
    EXPECT_EQ(test::refusal([&] { environment.step({}); }), "here: it is broken\n    mend it");
  });
}

// Counts down aloud, rewards turns by their length, and ends after as many as the row says.
class Countdown final : public EnvironmentEpisode {
 public:
  EnvironmentAnswer begin(const Value& row, uint64_t) override {
    left_ = *row.find("turns")->as_int();
    return {{said()}};
  }
  EnvironmentAnswer step(const Value& message) override {
    --left_;
    return {{said()}, double(message.find("content")->scalar.size()) / 10, left_ == 0};
  }

 private:
  Value said() const {
    Value out = Value::map();
    out.set("role", Value::text("user"));
    out.set("content", Value::text(str("There are ", left_, " parts to tell.")));
    return out;
  }
  int64_t left_ = 0;
};

TrainerParts episode_run(const fs::path& folder, const std::string& keys) {
  [[maybe_unused]] static const bool registered = [] {
    register_environment("countdown", [] { return std::unique_ptr<EnvironmentEpisode>(new Countdown); });
    return true;
  }();
  std::string rows;
  for (int i = 0; i < 4; ++i) rows += str("{\"prompt\": \"Tell story ", i, ".\", \"turns\": ", 1 + i % 3, "}\n");
  test::write_file(folder / "rows.jsonl", rows);
  TrainerParts parts = test::small_run(
      folder,
      "{trainer_type: agentic_moshpit, total_batch_size: 8, num_return_sequences: 4, gradient_accumulation_steps: 2, "
      "max_completion_length: 96, max_prompt_length: 64, temperature: 1.0, top_k: 0, top_p: 1, clip_grad: 1000, "
      "shuffle_train_dataset: false, generation_kwargs: {stop_strings: [\".\", \"!\"]}, " +
          keys + "}",
      "{informs: [{data_files: \"" + (folder / "rows.jsonl").string() + "\"}]}");
  const auto model = test::test_data("models/stories260K-chat");
  parts.model = models::load_model(model, parts.load);
  parts.tokenizer = text::Tokenizer::load(model);
  return parts;
}

std::vector<Value> rollouts(const fs::path& folder) {
  std::vector<Value> out;
  data::for_each_line(folder / "out/small/rollouts.jsonl", [&](std::string_view line, int64_t) {
    out.push_back(parse_json(line));
    return true;
  });
  return out;
}

TEST(AgenticMoshpit, LearnsWhatTheModelSaidInEpisodes) {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  Trainer(episode_run(
              folder.path(),
              "max_training_steps: 2, environment: {type: plugin, function: countdown}, rewards: [{type: repetition}]"))
      .run();
  const std::vector<Value> all = rollouts(folder.path());
  ASSERT_EQ(all.size(), 16u);
  bool several = false, ended = false;
  for (const Value& one : all) {
    const auto& turns = one.find("turn_rewards")->items;
    double sum = 0;
    for (const Value& reward : turns) sum += *reward.as_double();
    EXPECT_NEAR(*one.find("rewards")->find("environment")->as_double(), sum, 1e-6);
    EXPECT_TRUE(one.find("rewards")->find("repetition"));
    EXPECT_NE(one.find("prompt")->scalar.find("parts to tell."), std::string::npos);
    if (turns.size() < 2) continue;
    several = true;
    ended |= one.find("reason")->scalar != "length";
    EXPECT_NE(one.find("completion")->scalar.find(" parts to tell."), std::string::npos);
  }
  EXPECT_TRUE(several && ended);
  // Nothing that was inserted is learned, and what was sampled has the trainer's bits.
  for (const double difference : test::metric(folder.path() / "out/small", "sampling/logp_difference"))
    EXPECT_EQ(difference, 0);
  EXPECT_EQ(test::metric(folder.path() / "out/small", "sampling/logp_difference").size(), 2u);
  EXPECT_EQ(test::metric(folder.path() / "out/small", "episodes/mean_turns").size(), 2u);
}

TEST(AgenticMoshpit, GoesOnInsideOfAWindow) {
  const test::LogLines log;
  const std::string keys =
      "environment: {type: plugin, function: countdown}, num_iterations: 2, advantage_estimator: gigpo, save_steps: 1";
  const test::TemporaryFolder whole, parted;
  const auto run = [&](const fs::path& folder, int steps) {
    Trainer(episode_run(folder, str(keys, ", max_training_steps: ", steps))).run();
  };
  run(whole.path(), 2);
  run(parted.path(), 1);
  run(parted.path(), 2);
  EXPECT_EQ(test::metric(whole.path() / "out/small", "loss"), test::metric(parted.path() / "out/small", "loss"));
  EXPECT_EQ(files::read(whole.path() / "out/small/run-2/model.safetensors"),
            files::read(parted.path() / "out/small/run-2/model.safetensors"));
}

TEST(AgenticMoshpit, RefusesWhatCannotBeAnEpisode) {
  const test::LogLines log;
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& keys) {
    return test::refusal([&] { Trainer(episode_run(folder.path(), keys)).run(); });
  };
  EXPECT_EQ(
      refused("system_prompt: x"),
      "trainer.environment: is missing, and no tool is named, so nothing answers the model\n    give environment: "
      "{type: program, command: [...]}, or tool_names: [calculator]");
  EXPECT_EQ(refused("environment: {type: plugin, function: chess}"),
            "trainer.environment.function: no plug-in has an environment 'chess'\n    known: countdown");
  EXPECT_EQ(refused("tool_names: [calculator], rewards: [{type: repetition}]"),
            "trainer.tool_caller: the chat template does not say how the model calls tools\n    name a format, such as "
            "hermes");
  EXPECT_EQ(refused("tool_names: [calculator], tool_caller: hermes"),
            "trainer.rewards: is missing, so no completion is worth more than another\n    name at least one, such as "
            "[{type: answer}], or give the section reward_model");
  EXPECT_EQ(refused("environment: {type: program}"),
            "trainer:1:306: environment.command: is missing; type program needs it\n    for example: [python3, "
            "environment.py]\n1 problem in trainer; nothing was run.");
}

}  // namespace
}  // namespace easydel::train
