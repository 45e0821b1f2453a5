// type: json. A list of rows, or one row per line (which `datasets` calls JSON Lines and often names .json).
#include <array>
#include <fstream>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/data/rows.h"

namespace easydel::data {

extern const FileSource json_source, jsonl_source;

namespace {

constexpr std::array<std::string_view, 1> json_extensions{".json"};

// The first byte that is not white space; 0: none.
char first_character(const std::filesystem::path& file) {
  if (file.extension() == ".gz") {
    const std::string text = files::read_compressed(file);
    const size_t at = text.find_first_not_of(" \t\r\n");
    return at == std::string::npos ? '\0' : text[at];
  }
  std::ifstream in(file, std::ios::binary);
  char c = '\0';
  return in >> c ? c : '\0';
}

bool read_json(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  if (first_character(file) != '[') return jsonl_source.read(file, options, sink);
  Value rows = parse_json(files::read_compressed(file), file.string());
  for (Value& row : rows.items) {
    const std::string where = str(file.string(), ":", row.place.line);
    if (!row.is_map()) {
      options.bad_row({where, "a row must be an object with named fields", R"(as in {"text": "..."})"});
      continue;
    }
    if (!sink({std::move(row), where})) return false;
  }
  return true;
}

}  // namespace

extern const FileSource json_source{"json", json_extensions, read_json};

}  // namespace easydel::data
