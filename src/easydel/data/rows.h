// Rows of files: a map of fields with its file and line (or the row's number). Files are read row by row, so that a
// large one is never in memory as a whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::data {

struct Row {
  Value fields;       // a map
  std::string where;  // "train.jsonl:17"
};

// Receives a row; returns false to stop reading.
using RowSink = std::function<bool(Row row)>;

// The unit of a text file that becomes a row.
enum class SampleBy : uint8_t { line, paragraph, document };

// Where a row of a file begins.
struct RowPlace {
  int64_t row = 0;   // from 0; bad rows count
  int64_t byte = 0;  // of files that are read byte by byte
  int64_t line = 1;  // of files of text
  bool operator==(const RowPlace&) const = default;
};

struct ReadOptions {
  SampleBy sample_by = SampleBy::line;
  std::vector<std::string> fields = {};  // the requested fields; others may be null. Empty: all
  // Receives the error of a row that cannot be read, if the rows after it can; reading goes on. Null: it is thrown.
  std::function<void(const UserError&)> on_bad_row = {};
  // Rows to pass over, bad ones among them. The reader counts them down, so that the next file goes on; it neither
  // parses nor gives them. Rows that it cannot pass over it gives as ever, and who takes them counts down. Null: none.
  int64_t* rows_to_skip = nullptr;
  // With rows_to_skip: receives the byte and the line at which a row begins that is passed over; not of files of
  // columns.
  std::function<void(int64_t byte, int64_t line)> on_skipped = {};
  // The row to begin with, by its place in a RowIndex of the file. Null: the first one.
  const RowPlace* begin = nullptr;
  // Fields that may hold files, as images do: their bytes are kept as they are in a text's scalar.
  std::vector<std::string> raw_fields = {};

  bool will_skip() const { return rows_to_skip && *rows_to_skip > 0; }
  // Whether the row that begins at this place is passed over; counts it down.
  bool skips_row(int64_t byte, int64_t line) const {
    if (!will_skip()) return false;
    --*rows_to_skip;
    if (on_skipped) on_skipped(byte, line);
    return true;
  }
  void bad_row(const UserError& error) const {
    if (!on_bad_row) throw error;
    on_bad_row(error);
  }
};

// A kind of data file. One file, data/source_<type>.cpp, and its line in sources.cpp.
struct FileSource {
  std::string_view name;                         // inform's `type`
  std::span<const std::string_view> extensions;  // ".jsonl"; the ending of a compression is looked through
  // false: `sink` has had enough. UserError "file:line: what" for a broken file.
  bool (*read)(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink);
  // Throws UserError if this program was built without the library that reads such files; nullptr: always available.
  void (*check)() = nullptr;
  // Places that `read` can begin at without reading what is before, and the number of rows as the last one's row.
  // nullptr: any row's place, as ReadOptions::on_skipped tells it.
  std::vector<RowPlace> (*places)(const std::filesystem::path& file) = nullptr;
};

std::span<const FileSource> file_sources();                           // by name
std::string source_names();                                           // "arrow, csv, ... tsv, txt or webdataset"
const FileSource* find_source(std::string_view name);                 // nullptr: no such type
const FileSource* source_of_file(const std::filesystem::path& file);  // by extension

// Files that match the patterns (`*`, `?`, `[a-z]`, `{a,b}`, and `**` for any depth), sorted within each pattern,
// without duplicates. A folder that save_to_disk() of `datasets` wrote is replaced by its files. Throws UserError
// "where: no file matches 'x'" if a pattern matches nothing.
std::vector<std::filesystem::path> expand(std::span<const std::string> patterns, const std::string& where);

// Whether a pattern (`*`, `?`, `[a-z]`; `**/` is any depth, also none) means this path.
bool is_match(const std::string& path, const std::string& pattern);

}  // namespace easydel::data
