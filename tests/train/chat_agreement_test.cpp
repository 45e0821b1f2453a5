#include "easydel/train/chat_agreement.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

// Runs on conversations with a chat template.
class ChatAgreement : public testing::Test {
 protected:
  TrainerParts parts(const std::string& rows, const std::string& trainer, const std::string& chat_template) {
    test::write_file(folder_ / "rows.jsonl", rows);
    TrainerParts out = test::small_run(folder_.path(), trainer,
                                       "{informs: [{data_files: \"" + (folder_ / "rows.jsonl").string() + "\"}]}");
    out.tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"), chat_template);
    return out;
  }
  // What the plan says is wrong; the folder's name is left out.
  std::vector<std::string> mistakes(const std::string& rows, const std::string& trainer,
                                    const std::string& chat_template) {
    const test::LogLines log;
    const Trainer built(parts(rows, trainer, chat_template));
    std::vector<std::string> out;
    for (const std::string& line : built.plan().mistakes)
      out.push_back(test::replaced(line, folder_.path().string() + "/", ""));
    return out;
  }
  const test::TemporaryFolder folder_;
};

using Lines = std::vector<std::string>;

// Every message ends in the end token, and an answer begins after "A:".
std::string turns(const std::string& answer, const std::string& asked = "A:") {
  return "{% for m in messages %}{% if m.role == 'assistant' %}" + answer +
         "{{ m.content + eos_token }}{% else %}Q: {{ m.content }} {% endif %}{% endfor %}{% if add_generation_prompt "
         "%}" +
         asked + "{% endif %}";
}

constexpr const char* talk =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Once\"}, {\"role\": \"assistant\", \"content\": \" upon\"}, "
    "{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \" dog\"}]}\n";
constexpr const char* pair =
    "{\"prompt\": [{\"role\": \"user\", \"content\": \"Once\"}], \"chosen\": [{\"role\": \"assistant\", \"content\": "
    "\" dog\"}], \"rejected\": [{\"role\": \"assistant\", \"content\": \" cat\"}]}\n";
constexpr const char* answer =
    "{\"prompt\": [{\"role\": \"user\", \"content\": \"Once\"}], \"completion\": [{\"role\": \"assistant\", "
    "\"content\": \" dog\"}]}\n";

TEST_F(ChatAgreement, NothingIsSaidOfATemplateThatOnlyAppends) {
  EXPECT_EQ(mistakes(talk, "{trainer_type: sft, total_batch_size: 1}", turns("A:")), Lines());
  EXPECT_EQ(mistakes(pair, "{trainer_type: dpo, total_batch_size: 1}", turns("A:")), Lines());
  EXPECT_EQ(mistakes(answer, "{trainer_type: sft, total_batch_size: 1}", turns("A:")), Lines());
}

TEST_F(ChatAgreement, TheFirstTokenThatDiffersIsTold) {
  const std::string begins = "1 of the first 1 conversation begins in training with other tokens than `chat` sends: ";
  const std::string expected = begins + "rows.jsonl:1, where token 4 is '▁B' in chat and '▁' in training";
  const std::string other = turns("A:", "B:");
  EXPECT_EQ(mistakes(talk, "{trainer_type: sft, total_batch_size: 1}", other), Lines{expected});
  EXPECT_EQ(mistakes(pair, "{trainer_type: dpo, total_batch_size: 1}", other).back(), expected);
  EXPECT_EQ(mistakes(answer, "{trainer_type: sft, total_batch_size: 1}", other).back(), expected);
  // What chat sends may also be longer than all that is trained.
  const std::string question =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"Once\"}, {\"role\": \"assistant\", \"content\": \" "
      "dog\"}]}\n";
  EXPECT_EQ(mistakes(question, "{trainer_type: sft, total_batch_size: 1}", turns("A:", "A: dog{{ eos_token }} and")),
            Lines{begins + "rows.jsonl:1, where token 10 is '▁and' in chat and missing in training"});
}

// An earlier answer is rendered otherwise once another one follows, which only its own question shows.
TEST_F(ChatAgreement, EveryAnswerIsLookedAt) {
  const std::string changes =
      "{% for m in messages %}{% if m.role == 'assistant' %}A:{% if not loop.last %} thought{% endif %}{{ m.content + "
      "eos_token }}{% else %}{% if loop.last %}Q{% else %}P{% endif %}: {{ m.content }} {% endif %}{% endfor %}{% if "
      "add_generation_prompt %}A:{% endif %}";
  const Lines found = mistakes(std::string(talk) + talk, "{trainer_type: sft, total_batch_size: 2}", changes);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(
      found[0].starts_with("2 of the first 2 conversations begin in training with other tokens than `chat` "
                           "sends; the first is rows.jsonl:1, where token "))
      << found[0];
}

TEST_F(ChatAgreement, OnlyTheFirstHundredConversationsAreRead) {
  const std::string text = "{\"text\": \"Once upon a time\"}\n";
  std::string rows;
  for (int i = 0; i < 120; ++i) rows += talk;
  const Lines found = mistakes(rows, "{trainer_type: sft, total_batch_size: 4}", turns("A:", "B:"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("100 of the first 100 conversations begin")) << found[0];
}

TEST_F(ChatAgreement, ATrainedFolderSaysThatItsTemplateChanged) {
  const test::LogLines log;
  Trainer(parts(talk, "{trainer_type: sft, total_batch_size: 1, num_train_epochs: 1}", turns("A:"))).run();
  const std::filesystem::path trained = folder_ / "out" / "small" / "run-1";
  const std::vector<std::string> generate{"generate", trained.string(), "-p", "Once", "-n", "2"};
  EXPECT_EQ(test::run_program(generate).err.find("changed since"), std::string::npos);
  test::write_file(trained / "chat_template.jinja", turns("B:", "B:"));
  EXPECT_NE(
      test::run_program(generate).err.find(
          trained.string() + ": the chat template changed since the model was trained, so it may not answer as "
                             "it learned to; restore the files of the trained folder, or train with the new ones"),
      std::string::npos);
}

TEST_F(ChatAgreement, ARunThatGoesOnSaysThatItsTemplateChanged) {
  const test::LogLines log;
  const std::string keys = "{trainer_type: sft, total_batch_size: 1, max_training_steps: ";
  Trainer(parts(talk, keys + "1}", turns("A:"))).run();
  Trainer(parts(talk, keys + "2}", turns("A:"))).run();
  try {
    Trainer again(parts(talk, keys + "3}", turns("B:", "B:")));
    FAIL() << "another template";
  } catch (const UserError& error) {
    EXPECT_EQ(error.problem, "its rows were prepared otherwise: the chat template changed since");
    EXPECT_EQ(error.remedy, "name another save_directory or model_name, or set resume_if_possible: false");
  }
}

}  // namespace
}  // namespace easydel::train
