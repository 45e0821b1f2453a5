#include "easydel/data/row_index.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/data/columnar.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;
using test::refusal;
using test::TemporaryFolder;
using test::write_file;

// The rows from one on, at most `most`, as text; a bad row by its error.
std::vector<std::string> rows_of(const fs::path& file, ReadOptions options, size_t most = SIZE_MAX) {
  std::vector<std::string> out;
  options.on_bad_row = [&](const UserError& error) { out.push_back("bad: " + error.headline()); };
  source_of_file(file)->read(file, options, [&](const Row& row) {
    out.push_back(row.where + " " + to_json(row.fields));
    return out.size() < most;
  });
  return out;
}

std::vector<std::string> rows_at(const fs::path& file, SampleBy sample_by, const RowIndex& index, int64_t row,
                                 size_t most) {
  const RowPlace& begin = index.before(row);
  int64_t skip = row - begin.row;
  ReadOptions options{sample_by};
  options.rows_to_skip = &skip;
  options.begin = &begin;
  std::vector<std::string> out = rows_of(file, options, most);
  EXPECT_EQ(skip, 0);
  if (out.size() > most) out.resize(most);  // bad rows do not stop the reader
  return out;
}

// Reading from any row on gives what reading all gives there.
void expect_the_same_rows(const fs::path& file, SampleBy sample_by = SampleBy::line, size_t places = 2) {
  const std::vector<std::string> all = rows_of(file, {sample_by});
  const RowIndex index = make_row_index(*source_of_file(file), file, sample_by);
  EXPECT_THROW((void)index.before(index.rows), Bug);
  EXPECT_THROW((void)index.before(-1), Bug);
  ASSERT_EQ(index.rows, int64_t(all.size())) << file;
  EXPECT_GE(index.places.size(), places) << file;
  int64_t most = 0;
  for (size_t i = 0; i < index.places.size(); ++i)
    most = std::max(most, (i + 1 < index.places.size() ? index.places[i + 1].row : index.rows) - index.places[i].row);
  EXPECT_EQ(index.largest_group, most);
  const size_t step = std::max<size_t>(1, all.size() / 97);
  for (size_t row = 0; row < all.size(); row += step) {
    const size_t end = std::min(all.size(), row + 3);
    EXPECT_EQ(rows_at(file, sample_by, index, int64_t(row), end - row),
              std::vector<std::string>(all.begin() + long(row), all.begin() + long(end)))
        << file << " from row " << row;
  }
}

std::string filler(int i) { return std::string(size_t(40 + i * 7919 % 400), char('a' + i % 26)); }

TEST(RowIndex, RowsOfTextAreGoneToByByte) {
  const TemporaryFolder folder;
  std::string jsonl, list = " [\n", csv = "\xEF\xBB\xBFtext,\"n\nm\"\r\n", tsv = "text\n", txt, paragraphs = "\n\n";
  for (int i = 0; i < 1500; ++i) {
    const std::string text = filler(i), end = i % 3 ? "\n" : "\r\n";
    jsonl += (i % 11 ? "{\"text\": \"" : "broken \"") + text + "\"}" + end + (i % 5 ? "" : " \n");
    list += "{\"text\": \"" + text + ",]\\\"\"}" + (i == 1499 ? "]\n" : i % 2 ? ",\n" : " , ");
    csv += i % 2 ? text + ",x" + end : "\"" + text + "\n\"\"," + end + "\",a\"b" + (i % 22 ? "" : ",too,many") + end;
    tsv += text + (i % 9 ? "" : "\tmore") + "\n";
    txt += text + (i % 13 ? "" : "\xff") + end + (i % 4 ? "" : "\n");
    paragraphs += text + end + (i % 17 ? "" : "\xff\n\xfe\n") + (i % 3 == 2 ? " \n\n" : "");
  }
  // Rows longer than the distance of places.
  const std::string large(200'000, 'z');
  jsonl += "{\"text\": \"" + large + "\"}\n{\"text\": \"end\"}";
  txt += large + "\nend";
  write_file(folder / "a.jsonl", jsonl);
  write_file(folder / "lines.json", jsonl);
  write_file(folder / "list.json", list);
  write_file(folder / "a.csv", csv);
  write_file(folder / "a.tsv", tsv);
  write_file(folder / "a.txt", txt);
  write_file(folder / "p.txt", paragraphs);
  for (const char* name : {"a.jsonl", "lines.json", "list.json", "a.csv", "a.tsv", "a.txt"})
    expect_the_same_rows(folder / name, SampleBy::line, 4);
  expect_the_same_rows(folder / "p.txt", SampleBy::paragraph, 4);
  expect_the_same_rows(folder / "p.txt", SampleBy::document, 1);
  write_file(folder / "empty.jsonl", "\n\n");
  EXPECT_EQ(make_row_index(*find_source("jsonl"), folder / "empty.jsonl", SampleBy::line).rows, 0);
}

TEST(RowIndex, RowsOfColumnsAreGoneToByGroup) {
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  size_t several = 0;
  for (const char* name : {"snappy_1.parquet", "types.parquet", "arrow_types_file.arrow", "arrow_types_stream.arrow",
                           "months.arrow", "chats.parquet"}) {
    const fs::path file = test::test_data("columnar") / name;
    expect_the_same_rows(file, SampleBy::line, 1);
    several += make_row_index(*source_of_file(file), file, SampleBy::line).places.size() > 1;
  }
  EXPECT_GE(several, 3u);
}

TEST(RowIndex, RowsOfATarFileAreGoneToByHeader) {
  const TemporaryFolder folder;
  std::vector<std::string> command{"tar", "cf", (folder / "a.tar").string(), "-C", (folder / "in").string()};
  for (int i = 0; i < 60; ++i)
    for (const char* ending : {".txt", ".json"}) {
      // A long name has a header of its own.
      const std::string name = str(i % 7 ? "k" : std::string(150, 'k'), i, ending);
      write_file(folder / "in" / name,
                 ending[1] == 'j' ? "{\"x\": " + std::to_string(i) + "}" : std::string(size_t(3000 + i), 'x'));
      command.push_back(name);
    }
  ASSERT_EQ(test::run(command).status, 0);
  expect_the_same_rows(folder / "a.tar", SampleBy::line, 3);
  fs::rename(folder / "a.tar", folder / "plain.tar");
  command[1] = "czf";
  ASSERT_EQ(test::run(command).status, 0);
  EXPECT_EQ(
      refusal([&] { make_row_index(*find_source("webdataset"), folder / "a.tar", SampleBy::line); }),
      (folder / "a.tar").string() + ": is packed, so its rows can only be read one after the other\n    unpack it");
}

TEST(RowIndex, IsKeptAndIsMadeAgainForAnotherFile) {
  const TemporaryFolder folder;
  const fs::path file = folder / "a.jsonl", kept = folder / "kept";
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "{\"text\": \"" + filler(i) + "\"}\n";
  write_file(file, text);
  const FileSource& source = *find_source("jsonl");
  const auto first = RowIndices(kept).of(source, file, SampleBy::line);
  ASSERT_EQ(first->rows, 1000);
  const std::vector<fs::path> there = files::list(kept);
  ASSERT_EQ(there.size(), 1u);
  EXPECT_EQ(RowIndices(kept).of(source, file, SampleBy::line)->places, first->places);
  EXPECT_EQ(RowIndices(kept).of(source, file, SampleBy::line)->largest_group, first->largest_group);
  EXPECT_EQ(files::list(kept), there);

  // Names of one file share an index.
  fs::create_hard_link(file, folder / "link.jsonl");
  RowIndices both(kept);
  EXPECT_EQ(both.of(source, file, SampleBy::line), both.of(source, folder / "link.jsonl", SampleBy::line));

  // A broken one is made again, and so is that of a file that was written since.
  write_file(there[0], "broken");
  EXPECT_EQ(RowIndices(kept).of(source, file, SampleBy::line)->places, first->places);
  write_file(file, text + "{\"text\": \"more\"}\n");
  EXPECT_EQ(RowIndices(kept).of(source, file, SampleBy::line)->rows, 1001);
  EXPECT_EQ(RowIndices({}).of(source, file, SampleBy::line)->rows, 1001);
}

}  // namespace
}  // namespace easydel::data
