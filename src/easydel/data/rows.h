// Rows as files hold them: a map of fields that knows its file and line (of files without lines, the row's number).
// Reading is by rows, so that a large file is never in memory at once (a .json file that is one list is the exception).
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::data {

struct Row {
  Value fields;       // a map
  std::string where;  // "train.jsonl:17"
};

// Takes a row; false: no more are wanted.
using RowSink = std::function<bool(Row row)>;

// What a row of a text file is.
enum class SampleBy : uint8_t { line, paragraph, document };

struct SourceOptions {
  SampleBy sample_by = SampleBy::line;
  std::vector<std::string> fields = {};  // those that are asked for; others may come as nulls. Empty: all
};

// A kind of data file. One file, data/source_<type>.cpp, and its line in sources.cpp.
struct Source {
  std::string_view name;                         // inform's `type`
  std::span<const std::string_view> extensions;  // ".jsonl"; a trailing .gz is looked through
  // false: `sink` has had enough. UserError "file:line: what" for a broken file.
  bool (*read)(const std::filesystem::path& file, const SourceOptions& options, const RowSink& sink);
  // UserError where this program was built without what reads them; nullptr: it always can.
  void (*check)() = nullptr;
};

std::span<const Source> sources();                                // by name
std::string source_names();                                       // "arrow, csv, json, jsonl, parquet, tsv or txt"
const Source* find_source(std::string_view name);                 // nullptr: no such type
const Source* source_of_file(const std::filesystem::path& file);  // by extension

// Files that match the patterns (`*`, `?`, `[a-z]`, `{a,b}`, and `**` for any depth), sorted within each pattern,
// without doubles; a folder that save_to_disk() of `datasets` wrote stands for its files. UserError "where: no file
// matches 'x'" where a pattern matches nothing.
std::vector<std::filesystem::path> expand(std::span<const std::string> patterns, const std::string& where);

// Whether a pattern (`*`, `?`, `[a-z]`; `**/` is any depth, also none) means this path.
bool is_match(const std::string& path, const std::string& pattern);

// Lines of a text file without holding it: calls `line(text, number)` until it gives false. Gunzips *.gz (whole).
bool for_each_line(const std::filesystem::path& file, const std::function<bool(std::string_view, int64_t)>& line);

}  // namespace easydel::data
