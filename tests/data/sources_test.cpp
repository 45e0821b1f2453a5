// The kinds of data files. What each reads is in rows_test.cpp, delimited_test.cpp and columnar_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/data/rows.h"

namespace easydel::data {
namespace {

TEST(FileSources, AreAlphabeticalAndNamed) {
  EXPECT_TRUE(std::ranges::is_sorted(file_sources(), {}, &FileSource::name));
  EXPECT_EQ(source_names(), "arrow, csv, json, jsonl, parquet, tsv, txt or webdataset");
  for (const FileSource& source : file_sources()) EXPECT_EQ(find_source(source.name), &source) << source.name;
  EXPECT_EQ(find_source("xml"), nullptr);
}

TEST(FileSources, AreFoundByTheFilesExtension) {
  for (const FileSource& source : file_sources())
    for (const std::string_view extension : source.extensions) {
      EXPECT_EQ(source_of_file("a" + std::string(extension)), &source) << extension;
      EXPECT_EQ(source_of_file("a" + std::string(extension) + ".gz"), &source) << extension;
    }
  EXPECT_EQ(source_of_file("a.xml"), nullptr);
  EXPECT_EQ(source_of_file("jsonl"), nullptr);
}

}  // namespace
}  // namespace easydel::data
