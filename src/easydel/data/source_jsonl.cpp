// type: jsonl. One JSON object per line.
#include <array>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/rows.h"

namespace easydel::data {

extern const FileSource jsonl_source;

namespace {

constexpr std::array<std::string_view, 2> jsonl_extensions{".jsonl", ".ndjson"};

bool read_jsonl(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  const RowPlace begin = options.begin ? *options.begin : RowPlace();
  return for_each_line_from(file, begin.byte, begin.line, [&](const Line& one) {
    const auto& [line, number, byte] = one;
    if (line.find_first_not_of(" \t") == std::string_view::npos || options.skips_row(byte, number)) return true;
    const std::string where = str(file.string(), ":", number);
    Value row;
    try {
      row = parse_json(line, file.string());
    } catch (const UserError& error) {
      // The parser saw only this line.
      const char* const often = line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF") ? "save the file as UTF-8"
                                : number == 1 ? "each line holds one JSON object; other JSON is type: json"
                                              : "each line holds one JSON object, without a comma after it";
      options.bad_row({FilePlace{file.string(), int(number), error.place.column}, error.problem,
                       error.remedy.empty() ? often : error.remedy});
      return true;
    }
    if (!row.is_map()) {
      options.bad_row({where, "a row must be an object with named fields",
                       R"(as in {"text": "..."}, one on each line; a list of rows is type: json)"});
      return true;
    }
    return sink({std::move(row), where});
  });
}

}  // namespace

extern const FileSource jsonl_source{"jsonl", jsonl_extensions, read_jsonl};

}  // namespace easydel::data
