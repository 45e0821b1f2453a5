#include "easydel/base/file_listing.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::files {
namespace {

class FileListing : public testing::Test {
 protected:
  FileListing() {
    Recorder recorder(folder_.path());
    write(folder_ / "a", "one");
    fs::create_directory(folder_ / "nested");
    write(folder_ / "nested/b", "two");
    listing_ = listing_of(recorder.files());
  }
  std::string defect() const { return listing_defect(folder_.path(), listing_); }

  test::TemporaryFolder folder_;
  Value listing_;
};

TEST_F(FileListing, HasWhatWasWritten) {
  EXPECT_EQ(
      to_json(listing_),
      R"({"a": {"bytes": 3, "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"}, )"
      R"("nested/b": {"bytes": 3, "sha256": "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"}})");
  EXPECT_EQ(defect(), "");
  write(folder_ / "not listed", "");
  EXPECT_EQ(defect(), "");
}

TEST_F(FileListing, NamesTheFileThatIsMissing) {
  files::remove_all(folder_ / "nested/b");
  EXPECT_EQ(defect(), "nested/b is missing");
}

TEST_F(FileListing, SeesAnotherSize) {
  write(folder_ / "a", "on");
  EXPECT_EQ(defect(), "a has 2 bytes, not 3");
}

TEST_F(FileListing, SeesOtherBytesOfTheSameSize) {
  write(folder_ / "a", "oNe");
  EXPECT_EQ(defect(), "a is not what was written (its hash is different)");
}

TEST_F(FileListing, WithoutAHashIsADefect) {
  for (auto& [name, entry] : listing_.entries) entry = Value::map();
  EXPECT_EQ(defect(), "a is not what was written (its hash is different)");
}

}  // namespace
}  // namespace easydel::files
