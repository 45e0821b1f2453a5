// Every row of docs/row_formats.md trains one step with the method that its section names.
#include <regex>

#include "docs/page.h"

namespace easydel {
namespace {

// A row, the method that its section names, and additional keys of its inform.
struct Example {
  std::string method, row, keys;
};

std::vector<Example> examples_of(const std::string& page) {
  static const std::regex token(R"(Methods: `([a-z]+)`|```(jsonl|yaml)\n([^`]*)```)");
  std::vector<Example> out;
  std::string method;
  for (std::sregex_iterator at(page.begin(), page.end(), token), end; at != end; ++at) {
    if ((*at)[1].matched) {
      method = (*at)[1];
    } else if ((*at)[2] == "jsonl") {
      out.push_back({method, (*at)[3], ""});
    } else {
      out.back().keys = (*at)[3];
    }
  }
  return out;
}

std::string indented(const std::string& keys) {
  return std::regex_replace(keys, std::regex(R"(([^\n]+\n))"), "      $1");
}

TEST_F(Page, EveryRowFormatTrains) {
  const auto examples = examples_of(test::read_file(test::source_root() / "docs/row_formats.md"));
  ASSERT_GE(examples.size(), 18u);
  test::fs::copy(test::test_data("models/stories260K-chat"), folder_ / "chat");
  for (const Example& example : examples) {
    ASSERT_FALSE(example.method.empty()) << example.row;
    test::write_file(folder_ / "rows.jsonl", example.row);
    const bool marked = example.keys.find("roles_to_train") != std::string::npos;  // has a mask of its own
    const bool masked = !marked && example.method == "sft" &&
                        (example.row.starts_with("{\"messages\"") || example.row.starts_with("{\"conversations\""));
    test::write_file(
        folder_ / "run.yaml",
        str("model: {name_or_path: my-model, tokenizer: chat}\n",
            "mixture:\n  informs:\n    - data_files: rows.jsonl\n", indented(example.keys),
            "trainer:\n  trainer_type: ", example.method, "\n  max_training_steps: 1\n  total_batch_size: 1\n",
            "  max_length: 256\n  resume_if_possible: false\n", masked ? "  assistant_only_loss: true\n" : "",
            "  save_directory: runs\nactions: [train]\n"));
    const test::Ran ran = test::run_program({"elarge", "run.yaml"}, {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 0) << example.row << ran.err;
  }
}

TEST(RowFormats, ThePageNamesEveryKind) {
  const std::string page = test::read_file(test::source_root() / "docs/row_formats.md");
  for (const char* kind : {"text", "messages", "prompt_completion", "preference", "prompt", "unpaired", "stepwise",
                           "contrast", "labelled", "tokens"})
    EXPECT_NE(page.find(str("| `", kind, "` |")), std::string::npos) << kind;
}

}  // namespace
}  // namespace easydel
