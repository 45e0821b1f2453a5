#include "easydel/data/rows.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/data/row_kinds.h"
#include "support/data.h"

namespace easydel::data {
namespace {

using test::refusal;
using test::replaced;
using test::TemporaryFolder;
using test::write_file;

std::vector<Row> all_rows(const std::filesystem::path& file, ReadOptions options = {}) {
  std::vector<Row> out;
  source_of_file(file)->read(file, options, [&](Row row) {
    out.push_back(std::move(row));
    return true;
  });
  return out;
}

TEST(Rows, JsonIsAListOrALineEach) {
  const TemporaryFolder folder;
  write_file(folder / "list.json", "[\n  {\"text\": \"a\"},\n  {\"text\": \"b\"}\n]\n");
  write_file(folder / "lines.json", "{\"text\": \"a\"}\n\n{\"text\": \"b\"}\n");
  for (const char* name : {"list.json", "lines.json"}) {
    const auto rows = all_rows(folder / name);
    ASSERT_EQ(rows.size(), 2u) << name;
    EXPECT_EQ(rows[1].fields.find("text")->scalar, "b");
    EXPECT_EQ(rows[1].where, (folder / name).string() + ":3");
  }
}

TEST(Rows, TextIsLinesParagraphsOrTheWholeFile) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "one\ntwo\r\n\n\nthree\n");
  const auto lines = all_rows(folder / "a.txt");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].fields.find("text")->scalar, "two");
  const auto paragraphs = all_rows(folder / "a.txt", {SampleBy::paragraph});
  ASSERT_EQ(paragraphs.size(), 2u);
  EXPECT_EQ(paragraphs[0].fields.find("text")->scalar, "one\ntwo");
  EXPECT_EQ(paragraphs[1].where, (folder / "a.txt").string() + ":5");
  EXPECT_EQ(all_rows(folder / "a.txt", {SampleBy::document}).size(), 1u);
}

// The rows after the first `skip` are the same rows, whatever the ones before them are; what is left to skip is told.
TEST(Rows, RowsArePassedOverWithoutBeingParsed) {
  const TemporaryFolder folder;
  write_file(folder / "a.jsonl", "{\"text\": \"a\"}\n\nbroken\n{\"text\": \"c\"}\n[1]\n{\"text\": \"e\"}\n");
  write_file(folder / "a.json", "[{\"text\": \"a\"},\nbroken, {\"text\": \"c\"}, [1],\n{\"text\": \"e\"}]\n");
  write_file(folder / "lines.json", test::read_file(folder / "a.jsonl"));
  write_file(folder / "a.csv", "text\na\n\"b\nb\",too,many\nc\nd,many\n\"e\n\ne\"\n");
  write_file(folder / "a.txt", "a\n \n\xff\nc\n\xfe\ne\n");
  for (const char* name : {"a.jsonl", "a.json", "lines.json", "a.csv", "a.txt"}) {
    const auto rows_after = [&](int64_t skip, int64_t left) {
      std::vector<std::string> out;
      ReadOptions options;
      options.on_bad_row = [&](const UserError& error) { out.push_back("bad " + error.where); };
      options.rows_to_skip = &skip;
      for (const Row& row : all_rows(folder / name, options)) out.push_back(row.where + to_json(row.fields));
      EXPECT_EQ(skip, left) << name;
      return out;
    };
    // The bad rows are told first: they do not come in between here.
    EXPECT_EQ(rows_after(0, 0).size(), 5u) << name;
    const std::vector<std::string> last = rows_after(4, 0);
    ASSERT_EQ(last.size(), 1u) << name;
    EXPECT_EQ(last[0], rows_after(0, 0).back()) << name;
    EXPECT_EQ(rows_after(1, 0).size(), 4u) << name;
    EXPECT_EQ(rows_after(2, 0).size(), 3u) << name;
    EXPECT_TRUE(rows_after(9, 4).empty()) << name;
  }
}

TEST(Rows, ABrokenLineIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "a.jsonl", "{\"text\": \"a\"}\n{\"text\": }\n");
  const std::string text = replaced(refusal([&] { all_rows(folder / "a.jsonl"); }), folder.path().string(), "DIR");
  EXPECT_TRUE(text.starts_with("DIR/a.jsonl:2:")) << text;
}

TEST(Rows, ARowThatIsNoObjectIsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "a.jsonl", "[1]\n");
  EXPECT_EQ(replaced(refusal([&] { all_rows(folder / "a.jsonl"); }), folder.path().string(), "DIR"),
            "DIR/a.jsonl:1: a row must be an object with named fields\n    as in {\"text\": \"...\"}, one on each "
            "line; a list "
            "of rows is type: json");
}

TypedRow typed_row(const std::string& json, FieldRules rules = {}) {
  rules.inform = "mixture.informs[0]";
  return typed({parse_json(json), "rows.jsonl:7"}, rules);
}

TEST(RowKinds, AreDetectedFromTheFields) {
  EXPECT_EQ(typed_row(R"({"text": "a"})").kind, RowKind::text);
  EXPECT_EQ(typed_row(R"({"content": "a"})").text.scalar, "a");
  EXPECT_EQ(typed_row(R"({"prompt": "a", "completion": "b", "text": "c"})").kind, RowKind::prompt_completion);
  EXPECT_EQ(typed_row(R"({"prompt": "a", "chosen": "b", "rejected": "c"})").kind, RowKind::preference);
  const TypedRow chat = typed_row(R"({"messages": [{"role": "user", "content": "a"}]})");
  EXPECT_EQ(chat.kind, RowKind::messages);
  EXPECT_TRUE(chat.conversational);
  const TypedRow shared =
      typed_row(R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})");
  EXPECT_EQ(shared.kind, RowKind::messages);
  EXPECT_EQ(shared.text.items[1].find("role")->scalar, "assistant");
  EXPECT_EQ(shared.text.items[1].find("content")->scalar, "b");
}

TEST(RowKinds, AnImplicitPromptIsWhatBothAnswersBeginWith) {
  const TypedRow text = typed_row(R"({"chosen": "The sky is blue.", "rejected": "The sky is green."})");
  EXPECT_EQ(text.prompt.scalar, "The sky is");
  EXPECT_EQ(text.chosen.scalar, " blue.");
  EXPECT_EQ(text.rejected.scalar, " green.");
  const TypedRow chat = typed_row(
      R"({"chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
          "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}]})");
  EXPECT_EQ(chat.prompt.items.size(), 1u);
  EXPECT_EQ(chat.rejected.items.size(), 1u);
}

TEST(RowKinds, TheGuidesPairsHaveTheirPromptAsContent) {
  FieldRules rules;
  rules.content_field = "prompt";
  rules.additional_fields = {"chosen", "rejected"};
  const TypedRow row = typed_row(R"({"prompt": "p", "chosen": "c", "rejected": "r"})", rules);
  EXPECT_EQ(row.kind, RowKind::preference);
  EXPECT_EQ(row.prompt.scalar, "p");
}

TEST(RowKinds, ContentFieldChoosesTheText) {
  FieldRules rules;
  rules.content_field = "body";
  EXPECT_EQ(typed_row(R"({"text": "no", "body": "yes"})", rules).text.scalar, "yes");
}

TEST(RowKinds, ARowWithoutTheFieldSaysWhatItHas) {
  FieldRules rules;
  rules.content_field = "txt";
  EXPECT_EQ(refusal([&] { typed_row(R"({"id": 1, "body": "a"})", rules); }),
            "rows.jsonl:7: the row has no field 'txt'; it has: id, body\n    name the field with the text by "
            "mixture.informs[0].content_field");
  EXPECT_EQ(refusal([&] { typed_row(R"({"id": 1, "body": "a"})"); }),
            "rows.jsonl:7: the row has no field 'text'; it has: id, body\n    name the field with the text by "
            "mixture.informs[0].content_field; or give messages, prompt + completion, instruction + output, or prompt "
            "+ chosen + rejected");
}

TEST(Rows, TextThatIsNotUtf8IsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "one\ntwo\nna\xefve\n");
  for (const SampleBy unit : {SampleBy::line, SampleBy::paragraph, SampleBy::document})
    EXPECT_EQ(replaced(refusal([&] { all_rows(folder / "a.txt", {unit}); }), folder.path().string(), "DIR"),
              "DIR/a.txt:3: is not UTF-8 text\n    convert it, for example: iconv -f LATIN1 -t UTF-8 a.txt");
}

// TRL's rule (maybe_extract_prompt): a text next to lists of messages is dropped for what the answers begin with.
TEST(RowKinds, ATextPromptNextToMessagesIsTakenFromTheMessages) {
  const TypedRow row = typed_row(
      R"({"prompt": "q", "chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
          "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}]})");
  EXPECT_TRUE(row.conversational);
  ASSERT_EQ(row.prompt.items.size(), 1u);
  EXPECT_EQ(row.prompt.items[0].find("content")->scalar, "q");
  EXPECT_EQ(row.chosen.items.size(), 1u);
  EXPECT_FALSE(row.prompt_is_shared);
}

TEST(RowKinds, AConversationWithTwoAnswersIsAPair) {
  const TypedRow row = typed_row(
      R"({"conversations": [{"from": "human", "value": "q"}], "chosen": {"from": "gpt", "value": "a"},
          "rejected": {"from": "gpt", "value": "b"}})");
  EXPECT_EQ(row.kind, RowKind::preference);
  ASSERT_EQ(row.prompt.items.size(), 1u);
  EXPECT_EQ(row.prompt.items[0].find("content")->scalar, "q");
  EXPECT_EQ(row.rejected.items.at(0).find("role")->scalar, "assistant");
}

TEST(RowKinds, InstructionsArePromptsWithTheirInput) {
  const TypedRow row = typed_row(R"({"instruction": "Add.", "input": "1 and 2", "output": "3", "text": "whole"})");
  EXPECT_EQ(row.kind, RowKind::prompt_completion);
  EXPECT_EQ(row.prompt.items.at(0).find("content")->scalar, "Add.\n1 and 2");
  EXPECT_EQ(row.completion.items.at(0).find("content")->scalar, "3");
  EXPECT_NE(row.instruction_text.find("### Instruction:\nAdd.\n\n### Input:\n1 and 2\n\n### Response:\n"),
            std::string::npos);
  const TypedRow short_one = typed_row(R"({"instruction": "Add.", "input": "", "output": "3"})");
  EXPECT_EQ(short_one.prompt.items.at(0).find("content")->scalar, "Add.");
  EXPECT_EQ(short_one.instruction_text.find("Input"), std::string::npos);
  const TypedRow pair = typed_row(R"({"instruction": "Add.", "input": "1", "chosen": "c", "rejected": "r"})");
  EXPECT_EQ(pair.kind, RowKind::preference);
  EXPECT_EQ(pair.prompt.items.at(0).find("content")->scalar, "Add.\n1");
  EXPECT_EQ(pair.rejected.items.at(0).find("content")->scalar, "r");
}

TEST(RowKinds, ANullFieldIsSaidToBeNull) {
  EXPECT_EQ(refusal([&] { typed_row(R"({"text": null})"); }),
            "rows.jsonl:7: field 'text' is null\n    give it a value, or drop the row");
  const std::string told = refusal([&] { typed_row(R"({"prompt": "a", "completion": null})"); });
  EXPECT_NE(told.find("it has: prompt, completion (null)"), std::string::npos) << told;
}

TEST(RowKinds, AMixOfTextsAndMessagesIsRefused) {
  EXPECT_EQ(refusal([&] { typed_row(R"({"prompt": "a", "completion": [{"role": "assistant", "content": "b"}]})"); }),
            "rows.jsonl:7: the row mixes texts and lists of messages\n"
            "    give all of prompt, completion, chosen, rejected in one form");
}

}  // namespace
}  // namespace easydel::data
