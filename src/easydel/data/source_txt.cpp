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

bool read_document(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  const std::unique_ptr<ByteStream> stream = open_bytes(file);
  std::string text = read_all(*stream);
  if (is_blank(text) || options.skips_row(0, 1)) return true;
  return !is_utf8(text, file, 1, options) || sink(row_of(std::move(text), file, 1));
}

bool read_paragraphs(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  std::string paragraph;
  int64_t begin = 0;
  enum class State : uint8_t { outside, inside, passed_over } state = State::outside;  // passed over, or bad
  const auto give = [&] {
    const std::string text = std::exchange(paragraph, {});
    return std::exchange(state, State::outside) != State::inside || sink(row_of(text, file, begin));
  };
  const RowPlace from = options.begin ? *options.begin : RowPlace();
  const bool more = for_each_line_from(file, from.byte, from.line, [&](const Line& line) {
    if (is_blank(line.text)) return give();
    if (state == State::outside) {
      begin = line.number;
      state = options.skips_row(line.byte, line.number) ? State::passed_over : State::inside;
    }
    if (state == State::passed_over) return true;
    if (!is_utf8(line.text, file, line.number, options)) {
      state = State::passed_over;
      return true;
    }
    if (!paragraph.empty()) paragraph += '\n';
    paragraph += line.text;
    return true;
  });
  return more && give();
}

bool read_txt(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  if (options.sample_by == SampleBy::document) return read_document(file, options, sink);
  if (options.sample_by == SampleBy::paragraph) return read_paragraphs(file, options, sink);
  const RowPlace begin = options.begin ? *options.begin : RowPlace();
  return for_each_line_from(file, begin.byte, begin.line, [&](const Line& one) {
    const auto& [line, number, byte] = one;
    if (is_blank(line) || options.skips_row(byte, number)) return true;
    return !is_utf8(line, file, number, options) || sink(row_of(std::string(line), file, number));
  });
}

}  // namespace

extern const FileSource txt_source{"txt", txt_extensions, read_txt};

}  // namespace easydel::data
