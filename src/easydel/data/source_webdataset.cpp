// type: webdataset. A tar file whose members with one key, "0001.txt" and "0001.json", are one row: the rest of the
// name is the field (`datasets`, packaged_modules/webdataset).
#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "easydel/base/error.h"
#include "easydel/data/archive.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/rows.h"
#include "easydel/text/unicode.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 2> webdataset_extensions{".tar", ".tgz"};
constexpr std::array<std::string_view, 3> text_fields_of_tar{"txt", "text", "transcript"};
constexpr std::array<std::string_view, 7> number_fields_of_tar{"cls", "cls2", "class", "count", "index", "inx", "id"};

struct MemberName {
  std::string key, field;  // both empty: not a member of a row
};

MemberName split_name(const std::string& name) {
  const size_t folder = name.rfind('/') + 1, dot = name.find('.', folder);
  if (dot == std::string::npos || dot == folder) return {};
  std::string field = name.substr(dot + 1);
  std::ranges::transform(field, field.begin(), [](char c) { return char(std::tolower(uint8_t(c))); });
  return {name.substr(0, dot), field};
}

bool leaves_folder(const std::string& name) {
  const std::filesystem::path path = name;
  return path.is_absolute() || std::ranges::find(path, std::filesystem::path("..")) != path.end();
}

// A member's bytes as the value of its field; other files than texts, numbers and JSON are named with their size, or
// with their bytes.
Value decoded(const std::string& field, std::string bytes, const std::string& member, const std::string& where,
              bool keeps_bytes) {
  const std::string_view ending = std::string_view(field).substr(field.rfind('.') + 1);
  const auto is_one_of = [&](const auto& endings) { return std::ranges::find(endings, ending) != endings.end(); };
  const bool is_text = is_one_of(text_fields_of_tar);
  if (ending == "json" || is_text)
    if (text::valid_prefix(bytes) != bytes.size()) refuse(where, str("'", member, "' is not UTF-8 text"));
  if (ending == "json") return parse_json(bytes, where + ": " + member);
  if (is_text) return Value::text(std::move(bytes));
  if (is_one_of(number_fields_of_tar)) {
    int64_t number = 0;
    while (!bytes.empty() && std::isspace(uint8_t(bytes.back()))) bytes.pop_back();
    const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), number);
    if (error != std::errc() || end != bytes.data() + bytes.size())
      refuse(where, str("'", member, "' is not a whole number"), "its ending ." + field + " says that it is one");
    return Value::integer(number);
  }
  Value out = Value::map();
  out.set("path", Value::text(member));
  out.set("bytes", keeps_bytes ? Value::text(std::move(bytes)) : Value::integer(int64_t(bytes.size())));
  return out;
}

std::string bytes_of_member(ArchiveReader& archive, const std::string& where, const std::string& member) {
  std::string out;
  std::array<char, size_t{1} << 16> piece;
  for (size_t got = archive.read(piece.data(), piece.size()); got > 0; got = archive.read(piece.data(), piece.size())) {
    out.append(piece.data(), got);
    if (out.size() > max_row_bytes) refuse(where, str("'", member, "' is larger than ", max_row_bytes >> 20, " MiB"));
  }
  return out;
}

bool read_webdataset(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  ArchiveReader archive(file, ArchiveReader::Form::tar, options.begin ? options.begin->byte : 0);
  Row row;
  std::string key;
  bool is_left_out = false;  // because it is bad, or passed over
  const int64_t before = options.begin ? options.begin->row : 0;
  int64_t number = before;
  const auto give = [&] {
    if (number == before || is_left_out) return true;
    row.fields.set("__key__", Value::text(key));
    row.fields.set("__url__", Value::text(file.string()));
    return sink(std::move(row));
  };
  while (const auto member = archive.next()) {
    if (!member->is_file) continue;
    if (leaves_folder(member->name))
      refuse(file.string(), str("the member '", member->name, "' is outside of the archive's folder"),
             "make the archive again with relative names");
    const MemberName name = split_name(member->name);
    if (name.key.empty()) continue;
    if (number == before || name.key != key) {
      if (!give()) return false;
      key = name.key;
      row = {Value::map(), str(file.string(), ":", ++number)};
      is_left_out = options.skips_row(member->byte, number);
    }
    const bool is_asked =
        options.fields.empty() || std::ranges::find(options.fields, name.field) != options.fields.end();
    if (!is_asked || is_left_out) continue;
    std::string bytes = bytes_of_member(archive, row.where, member->name);
    try {
      const bool keeps_bytes = std::ranges::find(options.raw_fields, name.field) != options.raw_fields.end();
      row.fields.set(name.field, decoded(name.field, std::move(bytes), member->name, row.where, keeps_bytes));
    } catch (const UserError& error) {
      options.bad_row(error);
      is_left_out = true;
    }
  }
  return give();
}

}  // namespace

extern const FileSource webdataset_source{"webdataset", webdataset_extensions, read_webdataset};

}  // namespace easydel::data
