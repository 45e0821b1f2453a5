#include "easydel/data/inform_files.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::data {
namespace {

// The files of a data set, as "train: a b; test: c"; a folder called owner/name stands for one of the hub.
class SplitsOfFiles : public testing::Test {
 protected:
  SplitsOfFiles() : before_(std::filesystem::current_path()) { std::filesystem::current_path(folder_.path()); }
  ~SplitsOfFiles() override { std::filesystem::current_path(before_); }
  std::string of(const std::vector<std::string>& files) {
    std::filesystem::remove_all("owner");
    for (const std::string& file : files) test::write_file(folder_ / ("owner/name/" + file), "{\"text\": \"a\"}\n");
    std::string out;
    for (const char* split : {"train", "validation", "test"}) {
      InformConfig inform;
      inform.type = "owner/name";
      inform.split = split;
      std::string names;
      try {
        for (const auto& path : files_of(inform, {}, "informs[0].type"))
          names += " " + path.lexically_relative("owner/name").string();
      } catch (const UserError&) {
        continue;
      }
      out += (out.empty() ? "" : "; ") + std::string(split) + ":" + names;
    }
    return out;
  }
  test::TemporaryFolder folder_;
  std::filesystem::path before_;
};

// What `datasets` 5.2 makes of the same names.
TEST_F(SplitsOfFiles, AreThoseThatDatasetsFinds) {
  EXPECT_EQ(of({"a.jsonl", "contest.jsonl"}), "train: a.jsonl contest.jsonl");
  EXPECT_EQ(of({"train2.jsonl", "x-val.jsonl", "a.test.jsonl", "other.jsonl"}),
            "train: train2.jsonl; validation: x-val.jsonl; test: a.test.jsonl");
  EXPECT_EQ(of({"train/dev.jsonl", "test.jsonl"}), "train: train/dev.jsonl");
  EXPECT_EQ(of({"splits/raw.test/train.jsonl", "__cache/train/a.jsonl"}), "test: splits/raw.test/train.jsonl");
  EXPECT_EQ(of({"a.train.b.test.c.jsonl"}), "train: a.train.b.test.c.jsonl; test: a.train.b.test.c.jsonl");
  EXPECT_EQ(of({"data/train-00000-of-00001.jsonl", "test/a.jsonl"}), "train: data/train-00000-of-00001.jsonl");
  EXPECT_EQ(of({"train/a.csv", "train/b.csv", "train/c.txt"}), "train: train/a.csv train/b.csv");
  EXPECT_EQ(of({"train/a.csv", "train/c.jsonl"}), "train: train/c.jsonl");
}

}  // namespace
}  // namespace easydel::data
