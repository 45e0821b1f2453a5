#include "easydel/data/delimited.h"

#include <set>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"

namespace easydel::data {
namespace {

struct Field {
  std::string text;
  bool quoted = false;
};

// Fields of one row, which may have several lines. Line ends inside quotes become newlines.
class Splitter {
 public:
  explicit Splitter(char separator) : separator_(separator) {}

  // Returns false if the row continues in the next line.
  bool take(std::string_view line) {
    if (inside_) {
      fields_.back().text += '\n';
    } else {
      fields_.assign(1, {});
    }
    for (size_t i = 0; i < line.size(); ++i) {
      Field& field = fields_.back();
      const char c = line[i];
      if (inside_ && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
        field.text += line[++i];
      else if (inside_ && c == '"')
        inside_ = false;
      else if (inside_)
        field.text += c;
      else if (c == '"' && field.text.empty() && !field.quoted)
        inside_ = field.quoted = true;
      else if (c == separator_)
        fields_.emplace_back();
      else
        field.text += c;
    }
    return !inside_;
  }
  // The same for a row whose fields nobody needs. A quote opens only at the beginning of a field.
  bool pass(std::string_view line) {
    for (size_t at = line.find('"'); at != std::string_view::npos; at = line.find('"', at + 1)) {
      if (!inside_)
        inside_ = at == 0 || line[at - 1] == separator_;
      else if (at + 1 < line.size() && line[at + 1] == '"')
        ++at;
      else
        inside_ = false;
    }
    return !inside_;
  }
  const std::vector<Field>& fields() const { return fields_; }

 private:
  char separator_;
  bool inside_ = false;
  std::vector<Field> fields_;
};

std::vector<std::string> names_in(const std::vector<Field>& fields, const std::string& where) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Field& field : fields) {
    names.push_back(field.text);
    if (names.back().empty())
      refuse(where, str("field ", names.size(), " has no name"), "the first line names the fields");
    if (!seen.insert(names.back()).second)
      refuse(where, "two fields are called '" + names.back() + "'", "the first line names the fields");
  }
  return names;
}

}  // namespace

bool read_delimited(const std::filesystem::path& file, char separator, const ReadOptions& options,
                    const RowSink& sink) {
  Splitter splitter(separator);
  std::vector<std::string> names;
  std::string where;
  bool whole = true, is_passed = false;
  Line first;  // of the row
  size_t row_bytes = 0;
  const auto take = [&](const Line& one) {
    std::string_view line = one.text;
    if (whole) {
      first = one;
      row_bytes = 0;
    }
    row_bytes += line.size() + 1;
    if (row_bytes > max_row_bytes)
      refuse(str(file.string(), ":", first.number),
             str("the row goes on for more than ", max_row_bytes >> 20, " MiB: a quote is opened and not closed"));
    if (one.number == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    if (whole && line.empty()) return true;
    if (whole) is_passed = !names.empty() && options.will_skip();
    whole = is_passed ? splitter.pass(line) : splitter.take(line);
    if (!whole) return true;
    if (is_passed) return options.skips_row(first.byte, first.number);
    const std::vector<Field>& fields = splitter.fields();
    if (names.empty()) {
      names = names_in(fields, str(file.string(), ":", first.number));
      return options.begin == nullptr;
    }
    where = str(file.string(), ":", first.number);
    if (fields.size() > names.size()) {
      options.bad_row({where, str("the row has ", fields.size(), " fields, the first line names ", names.size()),
                       "put quotes around a value that contains the separator"});
      return true;
    }
    Row row{Value::map(), where};
    for (size_t i = 0; i < names.size(); ++i) {
      const bool there = i < fields.size() && (fields[i].quoted || !fields[i].text.empty());
      row.fields.set(names[i], there ? Value::text(fields[i].text) : Value{});
    }
    return sink(std::move(row));
  };
  bool more = for_each_line_from(file, 0, 1, take);
  if (options.begin) more = for_each_line_from(file, options.begin->byte, options.begin->line, take);
  if (!whole) refuse(str(file.string(), ":", first.number), "a quote is opened and never closed");
  return more;
}

}  // namespace easydel::data
