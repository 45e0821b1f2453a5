#include "easydel/data/byte_stream.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::data {
namespace {

std::string lines_of(const test::fs::path& file) {
  std::string out;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    out += str(number, "=", line, ";");
    return true;
  });
  return out;
}

TEST(ByteStream, EveryCompressionGivesTheSameLines) {
  const test::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 50000; ++i) text += str("line ", i, "\n");
  text += "last\r\nwithout end";
  test::write_file(folder / "a.txt", text);
  const std::string expected = lines_of(folder / "a.txt");
  EXPECT_TRUE(expected.ends_with("50001=last;50002=without end;"));
  for (const char* tool : {"gzip", "bzip2", "xz", "zstd"}) {
    if (test::run({"which", tool}).status != 0) continue;
    const std::string ending = std::string(tool) == "gzip"    ? ".gz"
                               : std::string(tool) == "bzip2" ? ".bz2"
                               : std::string(tool) == "xz"    ? ".xz"
                                                              : ".zst";
    const auto packed = folder / ("a.txt" + ending);
    ASSERT_EQ(
        test::run({"sh", "-c", std::string(tool) + " -c " + (folder / "a.txt").string() + " > " + packed.string()})
            .status,
        0);
    EXPECT_EQ(lines_of(packed), expected) << tool;
    EXPECT_EQ(without_compression(packed).filename(), "a.txt");
    const std::string bytes = test::read_file(packed);
    test::write_file(packed, bytes.substr(0, bytes.size() / 2));
    EXPECT_NE(test::refusal([&] { lines_of(packed); }), "(nothing was refused)") << tool << ": half of the file";
    test::write_file(packed, "nothing of the kind");
    EXPECT_NE(test::refusal([&] { lines_of(packed); }), "(nothing was refused)") << tool;
  }
}

TEST(ByteStream, AFileWithoutLineEndsIsRefusedBeforeItFillsTheMemory) {
  const test::TemporaryFolder folder;
  const auto file = folder / "a.jsonl";
  test::write_file(file, "short\n");
  test::fs::resize_file(file, max_row_bytes + 100);  // a hole: zeros without a line end
  EXPECT_EQ(test::replaced(test::refusal([&] { lines_of(file); }), folder.path().string(), "DIR"),
            "DIR/a.jsonl:2: the line is longer than 256 MiB\n    a row is a line: the file has no line ends, or is of "
            "another type");
}

}  // namespace
}  // namespace easydel::data
