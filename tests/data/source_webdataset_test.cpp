#include <gtest/gtest.h>

#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/data/rows.h"
#include "support/data.h"

namespace easydel::data {
namespace {

class TarFiles : public testing::Test {
 protected:
  // Packs the files, given as name and text, in this order.
  void pack(const std::string& tar, const std::vector<std::pair<std::string, std::string>>& files,
            const std::string& flags = "cf") {
    std::vector<std::string> command{"tar", flags, (folder_ / tar).string(), "-C", (folder_ / "in").string()};
    for (const auto& [name, text] : files) {
      test::write_file(folder_ / "in" / name, text);
      command.push_back(name);
    }
    ASSERT_EQ(test::run(command).status, 0);
  }
  std::string rows(const std::string& tar, ReadOptions options = {}) {
    std::string out;
    source_of_file(folder_ / tar)->read(folder_ / tar, options, [&](const Row& row) {
      Value fields = row.fields;
      std::erase_if(fields.entries, [](const auto& entry) { return entry.first == "__url__"; });
      out += row.where.substr(row.where.rfind(':') + 1) + to_json(fields) + "\n";
      return true;
    });
    return out;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(TarFiles, MembersWithOneKeyAreARow) {
  const std::vector<std::pair<std::string, std::string>> files{
      {"a/1.txt", "one"}, {"a/1.json", "{\"x\": 1}"}, {"a/2.cls", "7\n"}, {"a/2.seg.PNG", "..."}, {"README", "no"}};
  const char* const expected =
      "1{\"txt\": \"one\", \"json\": {\"x\": 1}, \"__key__\": \"a/1\"}\n"
      "2{\"cls\": 7, \"seg.png\": {\"path\": \"a/2.seg.PNG\", \"bytes\": 3}, \"__key__\": \"a/2\"}\n";
  pack("plain.tar", files);
  EXPECT_EQ(rows("plain.tar"), expected);
  int64_t skip = 1;
  ReadOptions after_one;
  after_one.rows_to_skip = &skip;
  EXPECT_EQ(rows("plain.tar", after_one), std::string(expected).substr(std::string(expected).find("2{")));
  EXPECT_EQ(skip, 0);
  pack("packed.tar.gz", files, "czf");
  EXPECT_EQ(rows("packed.tar.gz"), expected);
  ReadOptions options;
  options.fields = {"cls"};
  EXPECT_EQ(rows("plain.tar", options), "1{\"__key__\": \"a/1\"}\n2{\"cls\": 7, \"__key__\": \"a/2\"}\n");
}

TEST_F(TarFiles, ABadMemberMakesABadRow) {
  pack("a.tar", {{"1.cls", "seven"}, {"1.txt", "one"}, {"2.txt", "two"}});
  EXPECT_NE(test::refusal([&] { rows("a.tar"); }).find("a.tar:1: '1.cls' is not a whole number"), std::string::npos);
  int bad = 0;
  ReadOptions options;
  options.on_bad_row = [&](const UserError&) { ++bad; };
  EXPECT_EQ(rows("a.tar", options), "2{\"txt\": \"two\", \"__key__\": \"2\"}\n");
  EXPECT_EQ(bad, 1);
}

TEST_F(TarFiles, ArchivesThatLieAreRefused) {
  pack("a.tar", {{"1.txt", std::string(5000, 'x')}});
  const std::string bytes = test::read_file(folder_ / "a.tar");
  test::write_file(folder_ / "cut.tar", bytes.substr(0, 3000));
  for (const bool passes_over : {false, true}) {
    ReadOptions options;
    if (passes_over) options.on_bad_row = [](const UserError&) {};
    EXPECT_NE(test::refusal([&] { rows("cut.tar", options); }).find("cut.tar: cannot be unpacked: "), std::string::npos)
        << passes_over;
  }
  test::write_file(folder_ / "outside.txt", "x");
  ASSERT_EQ(test::run({"tar", "cPf", (folder_ / "up.tar").string(), "-C", (folder_ / "in").string(), "../outside.txt"})
                .status,
            0);
  EXPECT_NE(
      test::refusal([&] { rows("up.tar"); }).find("the member '../outside.txt' is outside of the archive's folder"),
      std::string::npos);
  test::write_file(folder_ / "no.tar", "this is not an archive");
  EXPECT_NE(test::refusal([&] { rows("no.tar"); }), "(nothing was refused)");
}

// libarchive would start `lrzip` for a file that begins so.
TEST_F(TarFiles, NoProgramIsStarted) {
  test::write_file(folder_ / "a.tar", std::string("LRZI\0\6", 6) + std::string(100, 'x'));
  const auto marker = folder_ / "started";
  test::write_file(folder_ / "bin/lrzip", "#!/bin/sh\ntouch " + marker.string() + "\ncat\n");
  test::fs::permissions(folder_ / "bin/lrzip", test::fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", ((folder_ / "bin").string() + ":" + path).c_str(), 1);
  EXPECT_NE(test::refusal([&] { rows("a.tar"); }), "(nothing was refused)");
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(test::fs::exists(marker));
}

}  // namespace
}  // namespace easydel::data
