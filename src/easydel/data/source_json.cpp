// type: json. A list of rows, or one row per line (which `datasets` calls JSON Lines and often names .json).
#include <array>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/json_list.h"
#include "easydel/data/rows.h"

namespace easydel::data {

extern const FileSource json_source, jsonl_source;

namespace {

constexpr std::array<std::string_view, 1> json_extensions{".json"};
constexpr uint64_t bytes_to_explain = uint64_t{64} << 20;

// The first byte that is not white space; 0: none.
char first_character(const std::filesystem::path& file) {
  const std::unique_ptr<ByteStream> stream = open_bytes(file);
  for (char c = 0; stream->read(&c, 1) == 1;)
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return c;
  return '\0';
}

// Of a list that cannot be cut into elements. The parser of whole documents says more, if the file is small.
[[noreturn]] void refuse_list(const std::filesystem::path& file, const ListError& error) {
  if (files::size(file) < bytes_to_explain) {
    const std::unique_ptr<ByteStream> stream = open_bytes(file);
    parse_json(read_all(*stream), file.string());
  }
  refuse(str(file.string(), ":", error.line), std::string(error.problem), "a .json file is one list of rows");
}

bool read_json(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  if (first_character(file) != '[') return jsonl_source.read(file, options, sink);
  const auto take = [&](std::string_view text, int64_t line, int64_t byte) {
    if (options.skips_row(byte, line)) return true;
    const std::string where = str(file.string(), ":", line);
    Value row;
    try {
      row = parse_json(text, file.string());
    } catch (const UserError& error) {
      // The parser saw only this element.
      const int below = std::max(error.place.line, 1);
      const FilePlace place{file.string(), int(line) + below - 1, below > 1 ? error.place.column : 0};
      options.bad_row({place, error.problem, error.remedy});
      return true;
    }
    if (!row.is_map()) {
      options.bad_row({where, "a row must be an object with named fields", R"(as in {"text": "..."})"});
      return true;
    }
    return sink({std::move(row), where});
  };
  const std::unique_ptr<ByteStream> stream = open_bytes(file, options.begin ? options.begin->byte : 0);
  try {
    return options.begin ? for_each_element_from(*stream, options.begin->byte, options.begin->line, take)
                         : for_each_element(*stream, take);
  } catch (const ListError& error) {
    refuse_list(file, error);
  }
}

}  // namespace

extern const FileSource json_source{"json", json_extensions, read_json};

}  // namespace easydel::data
