// The bytes of a file from its beginning to its end; files whose names end in .bz2, .gz, .xz or .zst are unpacked on
// the way, so that memory does not grow with the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace easydel::data {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Up to `bytes` bytes; 0 only at the end. UserError: the disk refuses, or the data are broken or incomplete.
  virtual size_t read(char* to, size_t bytes) = 0;
};

// `from`: the first byte to read, of a file that is not packed.
std::unique_ptr<ByteStream> open_bytes(const std::filesystem::path& file, int64_t from = 0);
bool is_packed(const std::filesystem::path& file);  // by its name
// The name without the ending of a compression: "a.jsonl" for a.jsonl.zst.
std::filesystem::path without_compression(const std::filesystem::path& file);
std::string read_all(ByteStream& stream);

// The longest line, paragraph or element that is a row: a file without line ends does not fill the memory.
inline constexpr size_t max_row_bytes = size_t{256} << 20;

// A line of a file, without its end.
struct Line {
  std::string_view text;
  int64_t number = 1;  // from 1
  int64_t byte = 0;    // where it begins
};

// Calls `take` for each line until it returns false, from a place on at which a line begins. UserError as
// for_each_line.
bool for_each_line_from(const std::filesystem::path& file, int64_t byte, int64_t number,
                        const std::function<bool(const Line&)>& take);
// Calls `line(text, number)` for each line, without its end, until it returns false. UserError "file:line: ..." for a
// line beyond max_row_bytes.
bool for_each_line(const std::filesystem::path& file, const std::function<bool(std::string_view, int64_t)>& line);

}  // namespace easydel::data
