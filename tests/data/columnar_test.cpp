#include "easydel/data/columnar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "easydel/base/error.h"
#include "easydel/data/dataset.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

std::vector<Row> all_rows(const fs::path& file, ReadOptions options = {}) {
  std::vector<Row> out;
  source_of_file(file)->read(file, options, [&](Row row) {
    out.push_back(std::move(row));
    return true;
  });
  return out;
}

std::vector<std::string> texts(const fs::path& file) {
  std::vector<std::string> out;
  for (const Row& row : all_rows(file)) out.push_back(to_json(row.fields));
  return out;
}

// A program that was built without Arrow has none of this.
class Columnar : public testing::Test {
 protected:
  void SetUp() override {
    if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  }
  static fs::path file(std::string_view name) { return test::test_data("columnar") / name; }
  std::string refused(const fs::path& broken) const {
    const std::string text = test::refusal([&] { all_rows(broken); });
    return test::replaced(test::replaced(text, file("").string(), "DIR/"), folder_.path().string(), "DIR");
  }
  test::TemporaryFolder folder_;
};

TEST_F(Columnar, EveryTypeIsWhatDatasetsWritesToJson) {
  const auto compare = [&](const char* expected, const char* got) {
    const auto want = all_rows(file(expected)), have = all_rows(file(got));
    ASSERT_EQ(have.size(), want.size()) << got;
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(have[i].where, str(file(got).string(), ":", i + 1));
      for (const auto& [name, value] : want[i].fields.entries) {
        const Value* const found = have[i].fields.find(name);
        ASSERT_TRUE(found) << name;
        EXPECT_TRUE(*found == value) << got << " row " << i << ", " << name << ": " << to_json(*found) << ", not "
                                     << to_json(value);
      }
    }
  };
  compare("types.jsonl", "types.parquet");
  compare("arrow_types.jsonl", "arrow_types_file.arrow");
  compare("arrow_types.jsonl", "arrow_types_stream.arrow");
}

TEST_F(Columnar, EveryCompressionIsRead) {
  const auto want = texts(file("texts.jsonl"));
  for (const char* codec : {"none", "snappy", "gzip", "zstd", "lz4", "brotli"})
    for (const char* version : {"_1.parquet", "_2.parquet"})
      EXPECT_EQ(texts(file(std::string(codec) + version)), want) << codec << version;
}

TEST_F(Columnar, OnlyTheFieldsThatAreAskedForAreRead) {
  for (const char* name : {"types.parquet", "arrow_types_file.arrow", "arrow_types_stream.arrow"}) {
    const auto rows = all_rows(file(name), {SampleBy::line, {"messages", "large_string", "no such"}});
    ASSERT_EQ(rows.size(), 3u) << name;
    EXPECT_EQ(rows[0].fields.entries.size(), all_rows(file(name))[0].fields.entries.size());
    EXPECT_TRUE(rows[0].fields.find("int64")->is_null());
    EXPECT_EQ(rows[0].fields.find("large_string")->scalar, "x");
    EXPECT_EQ(rows[0].fields.find("messages")->items[0].find("content")->scalar, "q");
    EXPECT_EQ(all_rows(file(name), {SampleBy::line, {"no such"}}).size(), 3u);
  }
}

// Row groups and batches of 300 rows and 20 rows; the first ones are not decoded, so they may even be broken.
TEST_F(Columnar, RowsArePassedOverByWholeGroups) {
  const test::TemporaryFolder folder;
  for (const auto& [name, form] :
       {std::pair{"a.parquet", columnar::Form::parquet}, {"a.arrow", columnar::Form::arrow}}) {
    const auto writer =
        columnar_library().write(folder / name, {form, columnar::Compression::none, {{"n", false}, {"many", false}}});
    const std::vector<int32_t> many(14000, 7);  // 300 of them fill a group
    for (int32_t i = 0; i < 320; ++i) writer->row(std::vector<columnar::NumberList>{std::vector<int32_t>{i}, many});
    writer->commit();
    const auto rows_after = [&](int64_t skip, int64_t left) {
      std::vector<std::string> out;
      ReadOptions options{.fields = {"n"}};
      options.rows_to_skip = &skip;
      source_of_file(folder / name)->read(folder / name, options, [&](const Row& row) {
        out.push_back(row.where.substr(row.where.rfind(':') + 1) + " " + to_json(row.fields.find("n")->items[0]));
        return true;
      });
      EXPECT_EQ(skip, left) << name;
      return out;
    };
    for (const int64_t skip : {0, 1, 255, 256, 257, 299, 300, 301, 319}) {
      const auto rows = rows_after(skip, 0);
      ASSERT_EQ(int64_t(rows.size()), 320 - skip) << name << " after " << skip;
      EXPECT_EQ(rows.front(), str(skip + 1, " ", skip)) << name;
      EXPECT_EQ(rows.back(), "320 319") << name;
    }
    EXPECT_TRUE(rows_after(400, 80).empty());
    if (form == columnar::Form::arrow) continue;
    std::string bytes = test::read_file(folder / name);
    std::fill(bytes.begin() + 4, bytes.begin() + 64, '\xff');
    test::write_file(folder / name, bytes);
    EXPECT_THROW(rows_after(0, 0), UserError);
    EXPECT_EQ(rows_after(300, 0).size(), 20u);
  }
}

TEST_F(Columnar, ReadingStopsWhenNoMoreIsWanted) {
  int rows = 0;
  EXPECT_FALSE(source_of_file("a.parquet")->read(file("snappy_1.parquet"), {}, [&](Row) { return ++rows < 20; }));
  EXPECT_EQ(rows, 20);
}

TEST_F(Columnar, AFolderOfDatasetsStandsForItsFiles) {
  std::vector<std::string> got, want = texts(file("chats.parquet"));
  for (const fs::path& one : expand(std::vector{file("saved").string()}, "data_files"))
    for (const std::string& row : texts(one)) got.push_back(row);
  EXPECT_EQ(got, want);
  EXPECT_EQ(got.at(1).substr(got[1].find("\"tools\"")),
            R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {"type": )"
            R"("integer"}}}}}]})");
  test::write_file(folder_ / "dataset_dict.json", R"({"splits": ["train", "test"]})");
  EXPECT_EQ(
      test::replaced(test::refusal([&] { expand(std::vector{folder_.path().string()}, "informs[0].data_files"); }),
                     folder_.path().string(), "DIR"),
      "informs[0].data_files: 'DIR' holds a dataset for each split\n    name one, for example 'DIR/train'");
}

TEST_F(Columnar, AGzippedFileIsUnpacked) {
  const std::string command =
      "gzip -c " + file("snappy_1.parquet").string() + " > " + (folder_ / "a.parquet.gz").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(texts(folder_ / "a.parquet.gz"), texts(file("texts.jsonl")));
}

TEST_F(Columnar, TheSameRowsAreTheSameExamples) {
  const auto fingerprint = [&](const std::vector<std::string>& files, std::optional<int64_t> most = {}) {
    DatasetOptions options;
    options.informs.emplace_back();
    for (const std::string& name : files) options.informs[0].data_files.push_back(file(name).string());
    options.informs[0].num_rows = most;
    options.shuffled = true;
    return Dataset::build(options,
                          [](const TypedRow& row) {
                            Prepared out;
                            out.example.emplace().add_sequence(
                                std::vector<int32_t>(row.text.scalar.begin(), row.text.scalar.end()));
                            return out;
                          })
        .fingerprint();
  };
  EXPECT_EQ(fingerprint({"zstd_2.parquet"}), fingerprint({"texts.jsonl"}));
  EXPECT_EQ(fingerprint({"zstd_2.parquet", "none_1.parquet"}, 57),
            fingerprint({"texts.jsonl", "snappy_1.parquet"}, 57));
}

TEST_F(Columnar, WhatHasNoFormInARowIsNamed) {
  EXPECT_EQ(refused(file("bytes.parquet")),
            "DIR/bytes.parquet:2: field 'bytes': bytes that are not UTF-8 text\n"
            "    leave it out, or write it in another form");
  EXPECT_EQ(refused(file("months.arrow")),
            "DIR/months.arrow:1: field 'months': the type month_day_nano_interval has no form in a row\n"
            "    leave it out, or write it in another form");
  EXPECT_EQ(refused(file("doubled.arrow")),
            "DIR/doubled.arrow: two columns are called 'text'\n    give each its own name");
}

TEST_F(Columnar, AFileOfAnotherKindIsNamed) {
  test::write_file(folder_ / "a.parquet", "{\"text\": \"a\"}\n");
  test::write_file(folder_ / "empty.arrow", "");
  const std::string end = "\n    the file is broken or of another kind";
  const std::string parquet = refused(folder_ / "a.parquet"), arrow = refused(folder_ / "empty.arrow"),
                    utf8 = refused(file("not_utf8.arrow"));
  EXPECT_TRUE(parquet.starts_with("DIR/a.parquet: cannot be read as Parquet: ") && parquet.ends_with(end)) << parquet;
  EXPECT_TRUE(arrow.starts_with("DIR/empty.arrow: cannot be read as Arrow: ") && arrow.ends_with(end)) << arrow;
  EXPECT_TRUE(utf8.starts_with("DIR/not_utf8.arrow: cannot be read as Arrow: ") && utf8.ends_with(end)) << utf8;
}

// Whatever its bytes are, a file is rows or one error.
TEST_F(Columnar, BrokenFilesAreAnErrorEach) {
  std::mt19937 random(7);
  int errors = 0;
  const auto attempt = [&](const std::string& bytes, const char* name) {
    const fs::path broken = folder_ / (std::string("broken") + fs::path(name).extension().string());
    std::ofstream(broken, std::ios::binary) << bytes;
    try {
      all_rows(broken);
    } catch (const UserError& error) {
      ++errors;
      EXPECT_TRUE(std::string(error.what()).starts_with(broken.string())) << error.what();
    }
  };
  for (const char* name : {"types.parquet", "gzip_2.parquet", "snappy_1.parquet", "arrow_types_file.arrow",
                           "arrow_types_stream.arrow", "saved/data-00000-of-00002.arrow"}) {
    const std::string whole = test::read_file(file(name));
    const size_t step = std::max<size_t>(1, whole.size() / 30);
    for (size_t length = 0; length < whole.size(); length += step) attempt(whole.substr(0, length), name);
    for (int i = 0; i < 100; ++i) {
      std::string garbled = whole;
      for (int k = 0; k < 1 + i % 4; ++k) {
        // The end of the file says the most.
        const size_t near = i % 2 ? garbled.size() : std::min<size_t>(garbled.size(), 600);
        garbled[garbled.size() - 1 - random() % near] = static_cast<char>(i % 3 ? random() : 0xFF);
      }
      attempt(garbled, name);
    }
  }
  EXPECT_GT(errors, 300);
}

TEST(ColumnarLibrary, WhatIsMissingIsNamed) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(test::refusal([] { load_columnar_library("/nowhere/libeasydel_arrow.so"); }),
            "/nowhere/libeasydel_arrow.so: is not there: this program was built without Arrow, which reads Parquet and "
            "Arrow files\n    install pyarrow (pip install pyarrow) where torch is and build again, or convert the "
            "files to jsonl");
  test::write_file(folder / "text.so", "no library");
  const std::string text =
      test::replaced(test::refusal([&] { load_columnar_library(folder / "text.so"); }), folder.path().string(), "DIR");
  EXPECT_TRUE(text.starts_with("DIR/text.so: cannot be loaded: ")) << text;
  EXPECT_TRUE(
      text.ends_with("\n    it reads Parquet and Arrow files; install the pyarrow that it was built with, or build "
                     "again"))
      << text;
  EXPECT_EQ(test::refusal([] { load_columnar_library("/lib/x86_64-linux-gnu/libz.so.1"); }),
            "/lib/x86_64-linux-gnu/libz.so.1: has no easydel_arrow_entry: it belongs to another version\n"
            "    rebuild easydel");
}

}  // namespace
}  // namespace easydel::data
