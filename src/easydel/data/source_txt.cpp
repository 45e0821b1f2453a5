// type: txt. A row is a line, a paragraph (up to an empty line) or the whole file; its field is `text`.
#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/rows.h"
#include "easydel/text/unicode.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 2> txt_extensions{".txt", ".text"};

Row row_of(std::string text, const std::filesystem::path& file, int64_t line) {
  Row row;
  row.fields.set("text", Value::text(std::move(text)));
  row.where = str(file.string(), ":", line);
  return row;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos; }

// False: the text, which begins at line `line`, is not UTF-8, and was reported as a bad row.
bool is_utf8(std::string_view text, const std::filesystem::path& file, int64_t line, const ReadOptions& options) {
  const size_t valid = text::valid_prefix(text);
  if (valid == text.size()) return true;
  const auto before = text.substr(0, valid);
  options.bad_row({str(file.string(), ":", line + std::ranges::count(before, '\n')), "is not UTF-8 text",
                   str("convert it, for example: iconv -f LATIN1 -t UTF-8 ", file.filename().string())});
  return false;
}

bool read_txt(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  if (options.sample_by == SampleBy::document) {
    const std::unique_ptr<ByteStream> stream = open_bytes(file);
    std::string text = read_all(*stream);
    return !is_utf8(text, file, 1, options) || is_blank(text) || sink(row_of(std::move(text), file, 1));
  }
  if (options.sample_by == SampleBy::line)
    return for_each_line(file, [&](std::string_view line, int64_t number) {
      if (is_blank(line) || options.skips_row()) return true;
      return !is_utf8(line, file, number, options) || sink(row_of(std::string(line), file, number));
    });
  std::string paragraph;
  int64_t begin = 0;
  bool broken = false;  // a line of the paragraph is
  const auto give = [&] {
    const std::string text = std::exchange(paragraph, {});
    return std::exchange(broken, false) || text.empty() || sink(row_of(text, file, begin));
  };
  const bool more = for_each_line(file, [&](std::string_view line, int64_t number) {
    if (!is_utf8(line, file, number, options)) return broken = true;
    if (is_blank(line)) return give();
    if (paragraph.empty()) {
      begin = number;
    } else {
      paragraph += '\n';
    }
    paragraph += line;
    return true;
  });
  return more && give();
}

}  // namespace

extern const FileSource txt_source{"txt", txt_extensions, read_txt};

}  // namespace easydel::data
