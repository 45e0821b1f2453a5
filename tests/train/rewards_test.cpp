#include "easydel/train/rewards.h"

#include <gtest/gtest.h>

#include "easydel/data/byte_stream.h"
#include "support/data.h"

namespace easydel::train {
namespace {

using Answers = std::vector<std::optional<double>>;

RewardEntry entry_of(RewardType type) {
  RewardEntry out;
  out.type = type;
  return out;
}

Answers score(CompletionReward& reward, const std::vector<std::string>& completions, const std::string& row = "{}",
              const std::vector<int32_t>& ids = {1, 2, 3}) {
  const Value fields = parse_json(row);
  std::vector<Judged> judged;
  for (const std::string& completion : completions) judged.push_back({fields, "prompt", completion, ids});
  return reward.score(judged);
}

Answers built_in(const RewardEntry& entry, const std::vector<std::string>& completions, const std::string& row = "{}",
                 const std::vector<int32_t>& ids = {1, 2, 3}) {
  return score(*build_rewards({entry}).at(0).reward, completions, row, ids);
}

TEST(Rewards, FindTheAnswerOfAText) {
  for (const auto& [text, answer] : {std::pair{"so \\boxed{\\frac{1}{2}} it is \\boxed{7} and 9", "7"},
                                     {"it is \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"},
                                     {"1 + 2 = 3\n#### 1,234", "1234"},
                                     {"first 3, then -4.50 dollars.", "-4.50"},
                                     {"it costs $1,200.", "1,200"},
                                     {"no number", ""}})
    EXPECT_EQ(answer_in(text), answer) << text;
}

TEST(Rewards, CompareAnswersAsRationalNumbers) {
  for (const auto& [a, b] : {std::pair{"0.5", "1/2"},
                             {"\\frac{1}{2}", ".5"},
                             {"1,000", "1000.00"},
                             {"$ 7.", "7"},
                             {"-3", "-3.0"},
                             {"50%", "50"},
                             {"x + 1", "x+1"},
                             {"-1/-2", "0.5"}})
    EXPECT_TRUE(same_answer(a, b)) << a << " " << b;
  for (const auto& [a, b] : {std::pair{"0.5", "1/3"},
                             {"1000", "100"},
                             {"x", "y"},
                             {"1/0", "1"},
                             {"", "0"},
                             {"123456789012345678901234567890123456789", "123456789012345678901234567890123456780"}})
    EXPECT_FALSE(same_answer(a, b)) << a << " " << b;
}

TEST(Rewards, OfAnswersCountOnlyForRowsThatHaveOne) {
  const RewardEntry entry = entry_of(RewardType::answer);
  EXPECT_EQ(built_in(entry, {"it is 12", "it is 13", ""}, R"({"answer": "3 * 4 = 12\n#### 12"})"),
            (Answers{1.0, 0.0, 0.0}));
  EXPECT_EQ(built_in(entry, {"12"}, R"({"answer": 12})"), (Answers{1.0}));
  EXPECT_EQ(built_in(entry, {"12"}, R"({"other": 12})"), (Answers{std::nullopt}));
}

TEST(Rewards, OfAnswersAgreeWithAllOfGsm8k) {
  const auto root = test::shared_data();
  if (!root) GTEST_SKIP() << "no shared data";
  const auto file = *root / "datasets/math/gsm8k_train.jsonl";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no gsm8k";
  const auto rewards = build_rewards({entry_of(RewardType::answer)});
  int64_t rows = 0;
  data::for_each_line(file, [&](std::string_view line, int64_t number) {
    const Value row = parse_json(line);
    const std::string right = row.find("answer")->scalar;
    const std::string wrong = right.substr(0, right.find("####")) + "#### " + answer_in(right) + "1";
    const std::vector<Judged> judged{{row, "", right, {}}, {row, "", wrong, {}}};
    EXPECT_EQ(rewards.at(0).reward->score(judged), (Answers{1.0, 0.0})) << number;
    ++rows;
    return true;
  });
  EXPECT_EQ(rows, 7473);
}

TEST(Rewards, OfFormLengthWordsJsonAndRepetition) {
  RewardEntry entry = entry_of(RewardType::format);
  entry.pattern = "^<think>[^<]*</think>";
  EXPECT_EQ(built_in(entry, {"<think>a</think> b", "b <think>"}), (Answers{1.0, 0.0}));
  entry = entry_of(RewardType::length);
  entry.target = 2;
  EXPECT_EQ(built_in(entry, {""}, "{}", {1, 2, 3}), (Answers{-0.5}));
  EXPECT_EQ(built_in(entry, {""}, "{}", {1, 2}), (Answers{0.0}));
  entry = entry_of(RewardType::contains);
  entry.words = {"cat", "dog"};
  EXPECT_EQ(built_in(entry, {"a cat", "cat dog", "bird"}), (Answers{0.5, 1.0, 0.0}));
  EXPECT_EQ(built_in(entry_of(RewardType::json), {" {\"a\": [1]}\n", "{a", ""}), (Answers{1.0, 0.0, 0.0}));
  entry = entry_of(RewardType::repetition);
  entry.ngram = 2;
  EXPECT_EQ(built_in(entry, {""}, "{}", {1, 2, 1, 2, 1}), (Answers{-0.5}));
  EXPECT_EQ(built_in(entry, {""}, "{}", {1, 2, 3, 4}), (Answers{0.0}));
}

TEST(Rewards, OfOneNameAreRefused) {
  EXPECT_EQ(test::refusal([] {
              build_rewards({entry_of(RewardType::json), entry_of(RewardType::json)});
            }),
            "trainer.rewards: two of them are named 'json'\n    give one of them another name");
}

RewardEntry shell(const std::string& script) {
  RewardEntry out = entry_of(RewardType::program);
  out.command = {"/bin/sh", "-c", script};
  return out;
}

std::string program_refusal(const RewardEntry& entry, size_t completions = 2) {
  return test::refusal([&] {
    const auto reward = program_reward("mine", entry);
    score(*reward, std::vector<std::string>(completions, "text"));
  });
}

TEST(ProgramReward, AnswersInAnyOrderOverSeveralWorkersAndSeveralTimes) {
  RewardEntry entry = entry_of(RewardType::program);
  entry.command = {"python3", "-c",
                   "import json,sys\n"
                   "lines=[]\n"
                   "for line in sys.stdin:\n"
                   "  lines.append(json.loads(line))\n"
                   "  if len(lines)==2:\n"
                   "    for one in reversed(lines):\n"
                   "      r=None if one['completion']=='none' else len(one['completion'])+one['row']['more']\n"
                   "      print(json.dumps({'id':one['id'],'reward':r}),flush=True)\n"
                   "    lines=[]\n"};
  entry.workers = 2;
  const auto reward = program_reward("mine", entry);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(score(*reward, {"a", "none", "bcd", "ef"}, R"({"more": 0.5})"), (Answers{1.5, std::nullopt, 3.5, 2.5}));
}

TEST(ProgramReward, ThatFailsSaysHow) {
  const std::string where = "trainer.rewards: program 'mine'";
  RewardEntry missing = entry_of(RewardType::program);
  missing.command = {"/nowhere/reward"};
  EXPECT_EQ(program_refusal(missing),
            where +
                ": '/nowhere/reward' cannot be started: No such file or directory\n    give the program's path, or "
                "the name of one in PATH");
  EXPECT_EQ(program_refusal(shell("read a; echo broken >&2; exit 3")),
            where + ": ended with exit status 3 with 2 completions to judge\n    its last line was: broken");
  EXPECT_EQ(program_refusal(shell("read a; echo '{\"id\": 0, \"reward\": 1}'; echo broken >&2; exit 3")),
            where + ": ended with exit status 3 with 1 completions to judge\n    its last line was: broken");
  EXPECT_EQ(program_refusal(shell("kill -9 $$")),
            where + ": was ended by signal 9 with 2 completions to judge\n    it had not answered anything");
  EXPECT_EQ(program_refusal(shell("echo good; cat")),
            where + ": answered a line that is not JSON\n    its last line was: good");
  EXPECT_EQ(program_refusal(shell("echo '{\"id\": 9, \"reward\": 1}'; cat")),
            where + ": answered an id that was not asked for\n    its last line was: {\"id\": 9, \"reward\": 1}");
  EXPECT_EQ(
      program_refusal(shell("echo '{\"id\": 0, \"reward\": 1}'; echo '{\"id\": 0, \"reward\": 2}'; cat > /dev/null")),
      where + ": answered id 0 twice\n    its last line was: {\"id\": 0, \"reward\": 2}");
  EXPECT_EQ(program_refusal(shell("echo '{\"id\": 0, \"reward\": \"much\"}'; cat")),
            where +
                ": answered a reward that is neither a number nor null\n    its last line was: {\"id\": 0, "
                "\"reward\": \"much\"}");
  EXPECT_EQ(program_refusal(shell("echo '{\"reward\": 1}'; cat")),
            where + ": answered a line without id and reward\n    its last line was: {\"reward\": 1}");
  RewardEntry hangs = shell("echo '{\"id\": 0, \"reward\": 1}'; sleep 5");
  hangs.timeout_seconds = 0.3;
  EXPECT_EQ(program_refusal(hangs),
            where +
                ": gave no answer for 0.3 seconds (timeout_seconds), with 1 completions to judge\n    its last line "
                "was: {\"id\": 0, \"reward\": 1}");
}

}  // namespace
}  // namespace easydel::train
