// What `validate` finds in data before a weight is loaded, and a run before its first action.
#include <gtest/gtest.h>

#include <regex>

#include "support/data.h"

namespace easydel {
namespace {

namespace fs = std::filesystem;
using test::write_file;

class CheckData : public testing::Test {
 protected:
  CheckData() {
    for (const char* name : {"model", "reference"}) {
      fs::copy(test::test_data("models/stories260K-hf"), folder_ / name, fs::copy_options::recursive);
      fs::permissions(folder_ / name / "config.json", fs::perms::owner_write, fs::perm_options::add);
    }
  }
  // What is free changes from one process to the next.
  static std::string without_free_memory(const std::string& text) {
    return std::regex_replace(text, std::regex("has [0-9.]+ [GM]B free"), "has what is free");
  }
  // Status 2 and the same words from `validate` and from a run, which leaves nothing behind.
  std::string refused(const std::string& trainer, const std::string& rows, const std::string& mixture = "",
                      const std::string& sections = "") const {
    write_file(folder_ / "rows.jsonl", rows);
    write_file(folder_ / "run.yaml",
               "model: {name_or_path: model}\nmixture: {informs: [{data_files: rows.jsonl}]" + mixture +
                   "}\ntrainer: {save_directory: out, total_batch_size: 1, max_training_steps: 1" + trainer + "}\n" +
                   sections + "actions: [train]\n");
    const test::Ran run = test::run_program({"--quiet", "run", "run.yaml"}, {.folder = folder_.path()});
    const test::Ran validated = test::run_program({"--quiet", "validate", "run.yaml"}, {.folder = folder_.path()});
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_EQ(without_free_memory(validated.err), without_free_memory(run.err));
    EXPECT_EQ(run.err.find("loaded"), std::string::npos) << run.err;
    EXPECT_FALSE(fs::exists(folder_ / "out"));
    // A folder without weights is worth a warning, which comes first.
    return run.err.starts_with("warning: ") ? run.err.substr(run.err.find('\n') + 1) : run.err;
  }
  void replace_in(const std::string& file, const std::string& from, const std::string& to) const {
    const std::string text = test::read_file(folder_ / file);
    ASSERT_NE(text.find(from), std::string::npos) << file;
    write_file(folder_ / file, test::replaced(text, from, to));
  }
  test::TemporaryFolder folder_;
};

const char* const text_row = "{\"text\": \"Once upon a time\"}\n";
const char* const pair_row = "{\"prompt\": \"Once\", \"chosen\": \" upon\", \"rejected\": \" a\"}\n";

TEST_F(CheckData, RowsAreReadByTheMethod) {
  EXPECT_EQ(refused("", str(text_row, "{\"txt\": \"b\"}\n")),
            "rows.jsonl:2: the row has no field 'text'; it has: txt\n    name the field with the text by "
            "mixture.informs[0].content_field; or give messages, prompt + completion, instruction + output, or prompt "
            "+ chosen + rejected\n");
  EXPECT_EQ(refused(", trainer_type: dpo", text_row),
            "rows.jsonl:1: a row of kind text is not for this trainer_type\n    give prompt + chosen + rejected; or "
            "set trainer_type: base or distillation or gkd or ray or sft or sparse_distillation\n");
  EXPECT_EQ(refused("", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n"),
            "model: has no chat template\n    give one: model.chat_template in a run, --template on the command line, "
            "or chat_template.jinja in the folder\n");
  EXPECT_EQ(refused(", max_length: 2", text_row, ", tokenization: {truncation: false}"),
            "rows.jsonl:1: the row has 6 tokens; max_length is 2\n    raise trainer.max_length, or truncate rows with "
            "mixture.tokenization.truncation: true\n");
  write_file(folder_ / "held_out.jsonl", "{\"text\": null}\n");
  EXPECT_EQ(refused(", do_eval: true", text_row, ", evaluation: [{data_files: held_out.jsonl}]"),
            "held_out.jsonl:1: field 'text' is null\n    give it a value, or drop the row\n");
}

TEST_F(CheckData, EvaluationsNeedHeldOutData) {
  const auto needs = [&](const std::string& keys, const std::string& key, const std::string& problem) {
    const std::string text = refused(", " + keys, text_row);
    EXPECT_NE(text.find(": trainer." + key + ": " + problem +
                        "\n    give mixture.evaluation, or an inform with split: validation\n1 problem"),
              std::string::npos)
        << text;
  };
  needs("do_eval: true", "do_eval", "there is no evaluation data");
  const std::string evaluations = "needs evaluations, and there is no evaluation data";
  needs("evaluation_steps: 2, early_stopping_patience: 1", "early_stopping_patience", evaluations);
  needs("evaluation_steps: 2, load_best_model_at_end: true", "load_best_model_at_end", evaluations);
  needs("evaluation_steps: 2, scheduler: reduce_on_plateau", "scheduler", evaluations);
  // The configuration guide's own runs have this key without such data.
  write_file(folder_ / "steps.yaml",
             test::replaced(test::read_file(folder_ / "run.yaml"), ", scheduler: reduce_on_plateau", ""));
  const test::Ran steps = test::run_program({"--quiet", "run", "steps.yaml"}, {.folder = folder_.path()});
  EXPECT_EQ(steps.status, 0) << steps.err;
  EXPECT_NE(steps.err.find("warning: trainer.evaluation_steps: there is no evaluation data, so nothing will be"),
            std::string::npos)
      << steps.err;
}

TEST_F(CheckData, AssistantOnlyLossNeedsConversations) {
  const std::string problem =
      "rows.jsonl:1: assistant_only_loss learns what the assistant says, and this row is not a conversation\n    give ";
  const std::string only = ", assistant_only_loss: true", pair = "{\"prompt\": \"Once\", \"completion\": \" upon\"}\n",
                    alpaca = "{\"instruction\": \"Tell\", \"output\": \"Once\"}\n";
  EXPECT_EQ(refused(only, text_row), problem + "messages, or set trainer.assistant_only_loss: false\n");
  EXPECT_EQ(refused(only, pair), problem + "messages, or set trainer.assistant_only_loss: false\n");
  EXPECT_EQ(refused(only, alpaca),
            problem + "a chat template by model.chat_template, or set trainer.assistant_only_loss: false\n");
}

TEST_F(CheckData, TokensMustBeInTheVocabularies) {
  const std::string dpo = ", trainer_type: dpo", reference = "reference_model: {name_or_path: reference}\n";
  replace_in("reference/tokenizer.json", "\"▁upon\": 407", "\"▁upon\": 378");
  replace_in("reference/tokenizer.json", "\"▁time\": 378", "\"▁time\": 407");
  EXPECT_EQ(refused(dpo, pair_row, "", reference),
            "reference_model.name_or_path: has another vocabulary than the model: token 378 is '▁upon' there and "
            "'▁time' here\n    both models score the same ids; give one that was made from the same model\n");
  fs::remove(folder_ / "reference/tokenizer.json");
  fs::remove(folder_ / "reference/model.safetensors");
  replace_in("reference/config.json", "\"vocab_size\": 512", "\"vocab_size\": 640");
  EXPECT_EQ(refused(dpo, pair_row, "", reference),
            "reference_model.name_or_path: has a vocabulary of 640 tokens, and the model of 512\n    both models score "
            "the same ids; give one that was made from the same model\n");
  fs::remove(folder_ / "model/model.safetensors");
  replace_in("model/config.json", "\"vocab_size\": 512", "\"vocab_size\": 300");
  const std::string told = refused("", text_row);
  EXPECT_TRUE(told.starts_with("rows.jsonl:1: its token ")) << told;
  EXPECT_NE(told.find("is outside the model's vocabulary of 300 tokens"), std::string::npos) << told;
}

TEST_F(CheckData, AModelThatDoesNotFitIsNotLoaded) {
  fs::remove(folder_ / "model/model.safetensors");
  replace_in("model/config.json", "\"hidden_size\": 64", "\"hidden_size\": 65536");
  replace_in("model/config.json", "\"intermediate_size\": 172", "\"intermediate_size\": 1048576");
  write_file(folder_ / "rows.jsonl", text_row);
  write_file(folder_ / "run.yaml",
             "model: {name_or_path: model}\nmixture: {informs: [{data_files: rows.jsonl}]}\ntrainer: {save_directory: "
             "out}\nactions: [train]\n");
  const test::Ran ran = test::run_program({"run", "run.yaml"}, {.folder = folder_.path()});
  EXPECT_EQ(ran.status, 2);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  const std::string told = ran.err.substr(ran.err.find("memory: "));
  EXPECT_TRUE(told.starts_with("memory: training model (")) << told;
  for (const char* part : {" parameters) needs about ", ": weights ", ", gradients ", ", optimizer ", " free\n    "})
    EXPECT_NE(told.find(part), std::string::npos) << part << told;
}

// A frozen model beside the trained one, which a section names, or which is a copy of it.
TEST_F(CheckData, AModelBesideItThatDoesNotFitIsNotLoaded) {
  const auto told = [&](const std::string& trainer, const std::string& sections = "") {
    const std::string text = refused(trainer, pair_row, "", sections);
    EXPECT_TRUE(text.starts_with("memory: training model (")) << text;
    return text.substr(0, text.find('\n'));
  };
  const auto grow = [&](const std::string& folder) {
    fs::remove(folder_ / folder / "model.safetensors");
    replace_in(folder + "/config.json", "\"hidden_size\": 64", "\"hidden_size\": 65536");
    replace_in(folder + "/config.json", "\"intermediate_size\": 172", "\"intermediate_size\": 1048576");
  };
  grow("reference");
  const std::string reference = "reference_model: {name_or_path: reference}\n";
  EXPECT_NE(told(", trainer_type: dpo", reference).find("(260032 parameters) needs about "), std::string::npos);
  EXPECT_NE(told(", trainer_type: dpo", reference).find(", reference "), std::string::npos);
  grow("model");
  EXPECT_NE(told(", trainer_type: dpo").find(", reference "), std::string::npos);
  EXPECT_EQ(told(", trainer_type: dpo, reference_free: true").find(", reference "), std::string::npos);
  EXPECT_EQ(told(", trainer_type: dpo", "lora: {r: 4}\n").find(", reference "), std::string::npos);
}

// 64,000 tokens in a step, each of which keeps some 18 kB, in 1.2 GB of address space.
TEST_F(CheckData, ActivationsThatDoNotFitAreRefusedBeforeTheModelIsLoaded) {
  std::string text, rows;
  for (int i = 0; i < 250; ++i) text += "Once upon a time ";
  for (int i = 0; i < 64; ++i) rows += "{\"text\": \"" + text + "\"}\n";
  write_file(folder_ / "rows.jsonl", rows);
  write_file(folder_ / "run.yaml",
             "model: {name_or_path: model}\nloader: {dtype: fp32}\nmixture: {informs: [{data_files: rows.jsonl}]}\n"
             "trainer: {save_directory: out, total_batch_size: 128}\nactions: [train]\n");
  const std::string limited = "ulimit -v 1200000; exec " + test::program().string() + " run run.yaml";
  const test::Ran ran = test::run({"sh", "-c", limited}, {.folder = folder_.path()});
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_EQ(ran.err.find("loaded"), std::string::npos) << ran.err;
  const size_t begin = ran.err.find("memory: training model (260032 parameters) needs about ");
  ASSERT_NE(begin, std::string::npos) << ran.err;
  for (const char* part :
       {", activations ", "; ulimit -v has ", "    this would fit: trainer.gradient_accumulation_steps: "})
    EXPECT_NE(ran.err.find(part, begin), std::string::npos) << part << ran.err;
}

TEST_F(CheckData, AGivenChatTemplateIsUsedAndSaved) {
  const std::string rows =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}\n";
  const std::string source = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}";
  write_file(folder_ / "rows.jsonl", rows);
  write_file(folder_ / "chat.jinja", source);
  for (const std::string& given : {std::string("chat.jinja"), "\"" + source + "\""}) {
    write_file(
        folder_ / "run.yaml",
        "model: {name_or_path: model, chat_template: " + given +
            "}\nmixture: {informs: [{data_files: rows.jsonl}]}\ntrainer: {save_directory: out, total_batch_size: "
            "1, max_training_steps: 1, resume_if_possible: false}\nactions: [train]\n");
    fs::remove_all(folder_ / "out");
    const test::Ran ran = test::run_program({"run", "run.yaml"}, {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(test::read_file(folder_ / "out/model/run-1/chat_template.jinja"), source);
  }
  fs::remove_all(folder_ / "out");
  EXPECT_NE(refused("", rows).find("has no chat template"), std::string::npos);
  write_file(folder_ / "run.yaml",
             "model: {name_or_path: model, chat_template: chat.jinj}\nactions: [{generate: {prompts: x}}]\n");
  EXPECT_NE(test::run_program({"run", "run.yaml"}, {.folder = folder_.path()})
                .err.find("model.chat_template: 'chat.jinj' is neither a file nor a template\n    give the path of a "
                          "Jinja file, or the template's text"),
            std::string::npos);
}

}  // namespace
}  // namespace easydel
