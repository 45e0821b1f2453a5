#include "easydel/data/delimited.h"

#include <gtest/gtest.h>

#include <fstream>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"
#include "support/data.h"

namespace easydel::data {
namespace {

using test::refusal;
using test::replaced;
using test::TemporaryFolder;
using test::write_file;

std::vector<Row> all_rows(const std::filesystem::path& file) {
  std::vector<Row> out;
  read_delimited(file, file.extension() == ".tsv" ? '\t' : ',', {},
                 [&](Row row) { return out.push_back(std::move(row)), true; });
  return out;
}

TEST(Delimited, FieldsAreNamedByTheFirstLine) {
  const TemporaryFolder folder;
  write_file(folder / "a.csv",
             "\xEF\xBB\xBFtext,label\r\n\"a, b\",1\r\n\"say \"\"hi\"\"\ntwice\",\n\nshort\n\"\",x\"y\n");
  write_file(folder / "a.tsv", "text\tlabel\na, b\t\"1\"\n");
  const auto rows = all_rows(folder / "a.csv");
  std::vector<std::string> got;
  for (const Row& row : rows) got.push_back(to_json(row.fields));
  EXPECT_EQ(got, (std::vector<std::string>{R"({"text": "a, b", "label": "1"})",
                                           R"({"text": "say \"hi\"\ntwice", "label": null})",
                                           R"({"text": "short", "label": null})", R"({"text": "", "label": "x\"y"})"}));
  EXPECT_EQ(rows[2].where, (folder / "a.csv").string() + ":6");
  EXPECT_EQ(to_json(all_rows(folder / "a.tsv").at(0).fields), R"({"text": "a, b", "label": "1"})");
}

TEST(Delimited, ABrokenFileIsNamed) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text) {
    write_file(folder / "a.csv", text);
    return replaced(refusal([&] { all_rows(folder / "a.csv"); }), folder.path().string(), "DIR");
  };
  EXPECT_EQ(refused("text\na,b\n"),
            "DIR/a.csv:2: the row has 2 fields, the first line names 1\n    put quotes around a value that contains "
            "the separator");
  EXPECT_EQ(refused("text,\n"), "DIR/a.csv:1: field 2 has no name\n    the first line names the fields");
  EXPECT_EQ(refused("text,text\n"), "DIR/a.csv:1: two fields are called 'text'\n    the first line names the fields");
  EXPECT_EQ(refused("text\na\n\"b\nc\n"), "DIR/a.csv:3: a quote is opened and never closed");
}

TEST(Delimited, ARowOfManyLinesIsRefusedBeforeItFillsTheMemory) {
  const TemporaryFolder folder;
  const auto file = folder / "a.csv";
  write_file(file, "text\n\"a");
  test::fs::resize_file(file, max_row_bytes * 2 / 3);  // a hole: zeros
  std::ofstream(file, std::ios::app) << "\nb";
  test::fs::resize_file(file, max_row_bytes * 4 / 3);
  EXPECT_EQ(replaced(refusal([&] { all_rows(file); }), folder.path().string(), "DIR"),
            "DIR/a.csv:2: the row goes on for more than 256 MiB: a quote is opened and not closed");
}

TEST(Delimited, ReadingStopsWhenNoMoreIsWanted) {
  const TemporaryFolder folder;
  write_file(folder / "a.csv", "text\na\nb\nc\n");
  int rows = 0;
  EXPECT_FALSE(read_delimited(folder / "a.csv", ',', {}, [&](const Row&) { return ++rows < 2; }));
  EXPECT_EQ(rows, 2);
  EXPECT_TRUE(read_delimited(folder / "a.csv", ',', {}, [&](const Row&) { return true; }));
}

}  // namespace
}  // namespace easydel::data
