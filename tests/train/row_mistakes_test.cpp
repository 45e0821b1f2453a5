#include "easydel/data/row_mistakes.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/data/check_rows.h"
#include "easydel/data/statistics.h"
#include "easydel/train/chat_agreement.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

using data::RowMistake;

// Rows of a file as a method prepares them.
class Mistakes : public testing::Test {
 protected:
  // `rows`: JSON Lines. `trainer`: YAML of its keys.
  TrainerParts parts(const std::string& rows, const std::string& trainer) {
    test::write_file(folder_ / "rows.jsonl", rows);
    return test::small_run(folder_.path(), trainer,
                           "{informs: [{data_files: \"" + (folder_ / "rows.jsonl").string() + "\"}]}");
  }
  data::RunData data(const std::string& rows, const std::string& trainer) {
    const TrainerParts made = parts(rows, trainer);
    return run_data(made.trainer, made.mixture, made.tokenizer, made.model->vocabulary(), made.model->task(),
                    end_tokens(made.model->folder(), *made.tokenizer));
  }
  std::vector<std::string> lines(const std::string& rows, const std::string& trainer) {
    const test::LogLines log;
    const data::InformStatistics found = data::statistics_of(data(rows, trainer)).informs.at(0);
    std::vector<std::string> out;
    for (const std::string& line : found.mistakes.lines(found.rows))
      out.push_back(test::replaced(line, folder_.path().string() + "/", ""));
    return out;
  }
  const test::TemporaryFolder folder_;
};

using Lines = std::vector<std::string>;

constexpr const char* pairs =
    "{\"prompt\": \"Once upon\", \"chosen\": \" a time\", \"rejected\": \" a cat\"}\n"
    "{\"prompt\": \"Once upon\", \"chosen\": \" a dog\", \"rejected\": \" a dog\"}\n"
    "{\"prompt\": \"Once\", \"chosen\": \" upon a time there was a dog\", \"rejected\": \" upon a time there was a "
    "cat\"}\n"
    "{\"prompt\": \"Once\", \"chosen\": \" upon a time there was a bird\", \"rejected\": \" upon a time there was a "
    "hat\"}\n";

TEST_F(Mistakes, EqualAnswersAreCountedAlsoOnceTheyAreCut) {
  const Lines expected{"2 of 4 rows lose a part of their answers to a limit of length; the first is rows.jsonl:3",
                       "1 of 4 rows has the same answer as chosen and as rejected: rows.jsonl:2",
                       "2 of 4 rows have the same tokens as chosen and as rejected, though the answers differ; the "
                       "first is rows.jsonl:3"};
  for (const char* method : {"dpo", "orpo", "kto"})
    EXPECT_EQ(lines(pairs, str("{trainer_type: ", method, ", max_length: 7, truncation_mode: keep_start}")), expected)
        << method;
  EXPECT_EQ(lines(pairs, "{trainer_type: dpo}"), (Lines{expected[1]}));
}

TEST_F(Mistakes, OnlyEqualPairsAreRefused) {
  const std::string rows = "{\"prompt\": \"Once\", \"chosen\": \" a dog\", \"rejected\": \" a dog\"}\n";
  try {
    Trainer trainer(parts(rows + rows, "{trainer_type: dpo, total_batch_size: 2}"));
    FAIL() << "two pairs that teach nothing";
  } catch (const UserError& error) {
    EXPECT_EQ(error.problem,
              "there is nothing to learn: 2 of 2 rows have the same answer as chosen and as rejected; "
              "the first is " +
                  (folder_ / "rows.jsonl").string() + ":1");
    EXPECT_EQ(error.remedy, "`easydel data check` says what is wrong with each row");
  }
}

TEST_F(Mistakes, AnswersThatALimitTakes) {
  const std::string rows =
      "{\"prompt\": \"Once upon a time there was a\", \"completion\": \" dog\"}\n"
      "{\"prompt\": \"Once\", \"completion\": \" upon a time there was a dog who had a hat\"}\n"
      "{\"prompt\": \"Once\", \"completion\": \" upon\"}\n";
  EXPECT_EQ(lines(rows, "{trainer_type: sft, max_length: 6, truncation_mode: keep_start}"),
            (Lines{"1 of 3 rows has nothing to learn and is left out: rows.jsonl:1",
                   "1 of 3 rows loses a part of its answer to a limit of length: rows.jsonl:2",
                   "1 of 3 rows loses its whole answer to a limit of length: rows.jsonl:1"}));
  // From the other end the prompts are shorter, and the answers stay.
  EXPECT_EQ(lines(rows, "{trainer_type: sft, max_length: 6, truncation_mode: keep_end}"),
            (Lines{"1 of 3 rows loses a part of its answer to a limit of length: rows.jsonl:2"}));
  EXPECT_TRUE(lines(rows, "{trainer_type: sft}").empty());
  const std::string marked =
      "{\"prompt\": \"Once\", \"completion\": \" upon a time there was a dog who had a hat\", \"label\": true}\n"
      "{\"prompt\": \"Once\", \"completion\": \" upon\", \"label\": false}\n";
  for (const char* method : {"kto", "bco"})
    EXPECT_EQ(lines(marked, str("{trainer_type: ", method, ", max_length: 12, max_prompt_length: 4}")),
              (Lines{"1 of 2 rows loses a part of its answer to a limit of length: rows.jsonl:1"}))
        << method;
}

TEST_F(Mistakes, StepsThatALimitTakes) {
  const std::string rows =
      "{\"prompt\": \"Once\", \"completions\": [\"upon a time\", \"there was a dog\"], \"labels\": [true, false]}\n"
      "{\"prompt\": \"Once\", \"completions\": [\"upon\"], \"labels\": [true]}\n";
  EXPECT_EQ(lines(rows, "{trainer_type: prm, max_length: 16, max_completion_length: 8}"),
            (Lines{"1 of 2 rows loses a part of its answer to a limit of length: rows.jsonl:1"}));
}

// " ti" and "me" are other tokens than " time".
TEST_F(Mistakes, PromptsWhoseLastTokenMergesWithTheAnswer) {
  const std::string line = "1 of 2 rows has a prompt whose last tokens change when the answer follows: rows.jsonl:2";
  EXPECT_EQ(lines("{\"prompt\": \"Once upon a\", \"completion\": \" time\"}\n"
                  "{\"prompt\": \"Once upon a ti\", \"completion\": \"me\"}\n",
                  "{trainer_type: sft}"),
            Lines{line});
  const std::string rows =
      "{\"prompt\": \"Once upon a\", \"chosen\": \" time\", \"rejected\": \" dog\"}\n"
      "{\"prompt\": \"Once upon a ti\", \"chosen\": \"me\", \"rejected\": \"ger\"}\n";
  for (const char* method : {"dpo", "orpo", "kto"})
    EXPECT_EQ(lines(rows, str("{trainer_type: ", method, "}")), Lines{line}) << method;
}

TEST_F(Mistakes, AreToldInThePlan) {
  const test::LogLines log;
  const std::string plan =
      Trainer(parts(pairs, "{trainer_type: dpo, max_length: 7, truncation_mode: keep_start}")).plan().text();
  const std::string file = (folder_ / "rows.jsonl").string();
  EXPECT_NE(plan.find("\nmistakes    1 of 4 rows has the same answer as chosen and as rejected: " + file + ":2\n"),
            std::string::npos)
      << plan;
  EXPECT_NE(plan.find("\nlearned     "), std::string::npos) << plan;
}

TEST_F(Mistakes, AnEndTokenThatNoRowLearns) {
  const test::LogLines log;
  const std::string never = "no row learns '</s>', which ends an answer: the model cannot learn to stop";
  const std::string rows = "{\"prompt\": \"Once\", \"completion\": \" upon a time there was a dog\"}\n";
  const std::string cut =
      Trainer(parts(rows, "{trainer_type: sft, max_length: 5, truncation_mode: keep_start}")).plan().text();
  EXPECT_NE(cut.find("\nmistakes    " + never + "\n"), std::string::npos) << cut;
  const std::string whole = Trainer(parts(rows, "{trainer_type: sft}")).plan().text();
  EXPECT_EQ(whole.find("mistakes"), std::string::npos) << whole;
  EXPECT_EQ(
      data::statistics_of(data(rows, "{trainer_type: sft, max_length: 5, truncation_mode: keep_start}")).never_stops,
      never);
}

// Conversations whose template does, does not, or only at the end writes the end token.
TEST_F(Mistakes, AnswersThatDoNotEndInAStopToken) {
  const auto turns = [](const std::string& end) {
    return "{% for m in messages %}{% if m.role == 'assistant' %}A: {% generation %}{{ m.content }}" + end +
           "{% endgeneration %}\n{% else %}Q: {{ m.content }}\n{% endif %}{% endfor %}";
  };
  const std::string talk =
      R"({"messages": [{"role": "user", "content": "Once"}, {"role": "assistant", "content": "upon"},
          {"role": "user", "content": "a"}, {"role": "assistant", "content": "time"}]})";
  std::string one_line = talk;
  std::erase(one_line, '\n');
  const std::string rows = one_line + "\n" + test::replaced(one_line, "upon", "") + "\n";
  const auto told = [&](const std::string& end, const std::string& trainer) {
    const test::LogLines log;
    TrainerParts made = parts(rows, trainer);
    made.tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"), turns(end));
    const data::InformStatistics found =
        data::statistics_of(run_data(made.trainer, made.mixture, made.tokenizer, made.model->vocabulary(),
                                     made.model->task(), end_tokens(made.model->folder(), *made.tokenizer)))
            .informs.at(0);
    std::vector<std::string> out;
    for (const std::string& line : found.mistakes.lines(found.rows))
      out.push_back(test::replaced(line, folder_.path().string() + "/", ""));
    return out;
  };
  const std::string assistant = "{trainer_type: sft, assistant_only_loss: true}";
  const std::string open = "2 of 2 rows have answers that do not end in a stop token; the first is rows.jsonl:1";
  const std::string masked = "1 of 2 rows has an answer of which nothing is learned: rows.jsonl:2";
  EXPECT_EQ(told("</s>", assistant), Lines{});
  EXPECT_EQ(told("</s> \n", assistant), Lines{}) << "blanks after it do not matter";
  EXPECT_EQ(told("", assistant), (Lines{open, masked}));
  EXPECT_EQ(told("{% if loop.last %}</s>{% endif %}", assistant),
            (Lines{"1 of 2 rows has an answer that does not end in a stop token: rows.jsonl:1", masked}));
  EXPECT_EQ(told("{% if loop.last %}</s>{% endif %}", "{trainer_type: sft}"), Lines{}) << "only its end counts";
  EXPECT_EQ(told("", "{trainer_type: sft}"), Lines{open});
  // What a limit of length takes is told as such.
  EXPECT_EQ(told("</s>", "{trainer_type: sft, assistant_only_loss: true, max_length: 16, truncation_mode: keep_start}"),
            (Lines{"2 of 2 rows lose a part of their answers to a limit of length; the first is rows.jsonl:1"}));
}

// Pairs and completions have the end token that their method adds; eos_token may be another one.
TEST_F(Mistakes, AnswersThatEndInAnotherToken) {
  const std::string rows = "{\"prompt\": \"Once\", \"completion\": \" upon a time\"}\n";
  EXPECT_EQ(lines(rows, "{trainer_type: sft}"), Lines{});
  EXPECT_EQ(lines(rows, "{trainer_type: sft, eos_token: '<unk>'}"),
            Lines{"1 of 1 row has an answer that does not end in a stop token: rows.jsonl:1"});
  EXPECT_EQ(lines("{\"text\": \"Once\"}\n", "{trainer_type: sft, eos_token: '<unk>'}"), Lines{})
      << "a text is not an answer";
}

TEST_F(Mistakes, GroupsThatCanOnlyBeEqual) {
  const test::LogLines log;
  const std::string rows =
      "{\"prompt\": \"Once\", \"answer\": \"3\"}\n{\"prompt\": \"Once upon\"}\n{\"prompt\": \"Twice\", \"answer\": "
      "null}\n";
  const std::string line = "2 of 3 rows can only have completions of equal rewards; the first is rows.jsonl:2";
  const std::string keys = "{trainer_type: grpo, total_batch_size: 4, num_return_sequences: 4, rewards: ";
  EXPECT_EQ(lines(rows, keys + "[{type: answer}]}"), Lines{line});
  EXPECT_TRUE(lines(rows, keys + "[{type: answer}, {type: length, target: 4}]}").empty());
  try {
    Trainer trainer(parts(rows, keys + "[{type: answer}], top_k: 1}"));
    FAIL() << "groups of equal completions";
  } catch (const UserError& error) {
    EXPECT_EQ(error.problem, "is 1, so all completions of a group would be equal");
  }
}

TEST_F(Mistakes, AreAmongTheRowsThatTheCheckFinds) {
  std::vector<std::string> problems;
  data::check_rows(data(pairs, "{trainer_type: dpo, max_length: 7, truncation_mode: keep_start}"),
                   [&](const data::BadRow& row) { problems.push_back(row.problem); });
  EXPECT_EQ(std::ranges::count(problems, std::string(text_of(RowMistake::equal_answers).problem)), 1);
  EXPECT_EQ(std::ranges::count(problems, std::string(text_of(RowMistake::equal_tokens).problem)), 2);
}

TEST(MistakeCounts, ComeBackFromTheirDocument) {
  data::MistakeCounts counts;
  data::RowMistakes one, other;
  one.add(RowMistake::equal_answers);
  one.add_cut(5, 3);
  other.add_cut(5, 0);
  other.add(RowMistake::nothing_learned);
  counts.add(one, "a:1");
  counts.add(other, "a:2");
  counts.add({}, "a:3");
  const auto back = data::MistakeCounts::of_document(counts.document());
  EXPECT_EQ(back.lines(3), counts.lines(3));
  EXPECT_EQ(back.lines(3).size(), 4u);
  EXPECT_EQ(back.useless(), 2);
  EXPECT_TRUE(data::MistakeCounts::of_document(data::MistakeCounts().document()).lines(3).empty());
}

}  // namespace
}  // namespace easydel::train
