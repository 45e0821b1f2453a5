// `easydel score`: lines from a file and from a program that waits for answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::run_program;

const std::string& story() {
  static const std::string folder = test::test_data("models/stories260K-hf").string();
  return folder;
}

TEST(Score, AnswersTheLinesOfAFileInOrder) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "in.jsonl", R"({"context": "Once upon a time", "until": ["."], "max_gen_toks": 20}
not JSON

{"context": "Once upon a time", "continuation": ", there"}
{"context": "Once upon a", "continuation": " time"}
)");
  const test::Ran ran = run_program({"score", story(), "--jsonl", (folder / "in.jsonl").string()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = ran.out.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(ran.out.substr(begin, end - begin));
  ASSERT_EQ(lines.size(), 4u) << ran.out;
  EXPECT_TRUE(lines[0].starts_with(R"({"text": ", there was a little girl)")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with(R"({"error": )")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with(R"({"logprob": -0.1)")) << lines[2];
  EXPECT_NE(ran.err.find("sharing saved"), std::string::npos) << ran.err;
  const test::Ran piped =
      run_program({"score", story(), "--no-share", "--batch", "1"}, {.input = test::read_file(folder / "in.jsonl")});
  EXPECT_EQ(piped.out, ran.out);
}

// The program answers while its input is still open: the shell sends the second block after the first answer.
TEST(Score, AnswersWhatStandsBeforeAnEmptyLineAtOnce) {
  const std::string script = R"(coproc S { "$0" score "$1"; }
printf '%s\n\n' '{"context_ids": [1], "continuation_ids": [403]}' >&"${S[1]}"
read -r -t 60 first <&"${S[0]}" || exit 9
printf '%s\n\n' '{"context_ids": [1], "continuation_ids": [403]}' >&"${S[1]}"
read -r -t 60 second <&"${S[0]}" || exit 8
[ "$first" = "$second" ] && printf '%s\n' "$first")";
  const test::Ran ran = test::run({"bash", "-c", script, test::program().string(), story()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with(R"({"logprob": -)")) << ran.out;
}

TEST(Score, RefusesWhatCannotBeScored) {
  EXPECT_EQ(run_program({"score", story(), "--jsonl", "/nowhere/x"}).err,
            "/nowhere/x: cannot be read\n    give a file of JSON Lines, or - for standard input\n");
  EXPECT_EQ(run_program({"score", story(), "--max-length", "513"}, {.input = R"({"text": "a"})"}).err,
            "max_length: 513 is more than the model's 512 positions\n");
  const test::Ran ran = run_program({"score", test::test_data("hf_goldens/bert_mlm").string()},
                                    {.input = R"({"context_ids": [1], "continuation_ids": [3]})"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("is not a causal language model"), std::string::npos) << ran.err;
}

// hf_models.jsonl was recorded with lm-evaluation-harness' own back end: tests/data/eval/record_models.py.
TEST(Score, IsThatOfTheHarnessBackEndForManyFamilies) {
  std::map<std::string, std::vector<Value>> records;
  std::ifstream file(test::test_data("eval/hf_models.jsonl"));
  for (std::string line; std::getline(file, line);) {
    Value record = parse_json(line);
    records[record.find("model")->scalar].push_back(std::move(record));
  }
  EXPECT_EQ(records.size(), 12u);
  for (const auto& [model, asked] : records) {
    std::string lines;
    for (const Value& record : asked) lines += to_json(*record.find("line")) + "\n";
    const test::Ran ran = test::run_program(
        {"score", test::test_data("hf_goldens/" + model).string(), "--dtype", "fp32", "--max-length", "64"},
        {.input = lines});
    std::istringstream answers(ran.out);
    std::string answer;
    for (size_t i = 0; i < asked.size(); ++i) {
      ASSERT_TRUE(std::getline(answers, answer)) << model << ran.err;
      const Value found = parse_json(answer), &expected = *asked[i].find("answer");
      const double right = expected.find("logprob")->as_double().value();
      ASSERT_TRUE(found.find("logprob")) << model << answer;
      EXPECT_NEAR(found.find("logprob")->as_double().value(), right, 2e-4 * std::abs(right) + 1e-4) << model << i;
      EXPECT_EQ(found.find("is_greedy")->as_bool(), expected.find("is_greedy")->as_bool()) << model << i;
    }
  }
}

}  // namespace
}  // namespace easydel
