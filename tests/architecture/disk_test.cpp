// What is on the disk is asked through easydel/base/files.h: std::filesystem's own functions either throw what nobody
// catches, or take an error for "there is nothing", and a folder that cannot be read for an empty one.
#include <gtest/gtest.h>

#include "architecture/source.h"

namespace easydel::test {
namespace {

const std::regex raw_call(
    R"(\b((?:fs|filesystem)::(?:exists|is_directory|is_regular_file|is_symlink|is_empty|is_other|file_size|status|)"
    R"(symlink_status|directory_iterator|recursive_directory_iterator|directory_entry|create_\w+|remove|remove_all|)"
    R"(rename|copy\w*|canonical|weakly_canonical|absolute|relative|proximate|equivalent|read_symlink|)"
    R"(last_write_time|space|permissions|resize_file|current_path|temp_directory_path|hard_link_count)\b|)"
    R"(std::error_code\b))");

TEST(Disk, IsAskedThroughBaseFiles) {
  for (const SourceFile& file : source_files("src/easydel", {".h", ".cpp"})) {
    if (file.layer() == "base") continue;
    for (const std::string& call : all_matches(file.text, raw_call))
      ADD_FAILURE() << file.path << ": " << call << ": use files:: (easydel/base/files.h)";
  }
}

}  // namespace
}  // namespace easydel::test
