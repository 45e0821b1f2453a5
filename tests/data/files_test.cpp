// Files by patterns, and their lines.
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/rows.h"
#include "support/data.h"

namespace easydel::data {
namespace {

using test::refusal;
using test::replaced;
using test::TemporaryFolder;
using test::write_file;

TEST(Files, ArePatternsExpanded) {
  const TemporaryFolder folder;
  for (const char* name : {"a.jsonl", "b.jsonl", "deep/er/c.jsonl", "d.txt"}) write_file(folder / name, "");
  const std::string root = folder.path().string();
  const auto names = [&](std::vector<std::string> patterns) {
    std::vector<std::string> out;
    for (const auto& path : expand(patterns, "data_files")) out.push_back(path.lexically_relative(root).string());
    return out;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({root + "/*.jsonl"}), (Names{"a.jsonl", "b.jsonl"}));
  EXPECT_EQ(names({root + "/**/*.jsonl"}), (Names{"a.jsonl", "b.jsonl", "deep/er/c.jsonl"}));
  EXPECT_EQ(names({root + "/{b,a}.jsonl", root + "/a.jsonl"}), (Names{"b.jsonl", "a.jsonl"}));
  EXPECT_EQ(replaced(refusal([&] { names({root + "/*.csv"}); }).substr(0, 60 + root.size()), root, "DIR").substr(0, 52),
            "data_files: no file matches 'DIR/*.csv'\n    looked f");
}

TEST(Files, MatchPatterns) {
  EXPECT_TRUE(is_match("data/train-0.jsonl", "data/train-*.jsonl"));
  EXPECT_TRUE(is_match("data/a.jsonl", "**/a.jsonl"));
  EXPECT_TRUE(is_match("a.jsonl", "**/a.jsonl"));
  EXPECT_TRUE(is_match("a1", "a[0-9]"));
  EXPECT_FALSE(is_match("data/deep/a.jsonl", "data/*.jsonl")) << "a star does not cross folders";
  EXPECT_FALSE(is_match("ab", "a[0-9]"));
}

TEST(Files, AreReadLineByLineUntilNoMoreIsWanted) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "one\ntwo\nthree");
  std::vector<std::string> lines;
  EXPECT_FALSE(for_each_line(folder / "a.txt", [&](std::string_view line, int64_t number) {
    lines.push_back(str(number, " ", line));
    return number < 2;
  }));
  EXPECT_EQ(lines, (std::vector<std::string>{"1 one", "2 two"}));
  lines.clear();
  EXPECT_TRUE(
      for_each_line(folder / "a.txt", [&](std::string_view line, int64_t) { return lines.emplace_back(line), true; }));
  EXPECT_EQ(lines.back(), "three") << "the last line needs no end";
}

}  // namespace
}  // namespace easydel::data
