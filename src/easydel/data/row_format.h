// Rows that other programs write in their own form, as the kinds of row_kinds.h: `format` of an inform. One file,
// data/format_<name>.cpp, and its line in row_formats.cpp for each.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/data/rows.h"

namespace easydel::data {

// How the fields and roles of rows are called; all empty: as the format says.
struct FormatNames {
  std::map<std::string, std::string> columns;         // the format's field: the row's
  std::map<std::string, std::string> roles;           // the row's role: ours
  std::map<std::string, std::string> message_fields;  // ours (role, content ...): a message's
  std::string inform;                                 // "mixture.informs[0]", for messages
};

// A row while a format converts it. Fields are called as the format calls them.
class FormatRow {
 public:
  FormatRow(Row& row, const FormatNames& names) : row_(row), names_(names) {}

  const Value* find(std::string_view field) const;  // nullptr: not there, or null
  const Value& need(std::string_view field) const;  // UserError: not there
  std::string text(std::string_view field) const;   // UserError: not there, or not a text
  std::string text_or_empty(std::string_view field) const;
  std::string name_of(std::string_view field) const;  // in the row
  Value messages(std::string_view field) const;       // with our roles and fields
  Value message(const Value& message) const;          // the same for one
  void set(std::string_view name, Value value);       // a field of the kinds
  void drop(std::string_view field);                  // so that it is not taken for a kind's field
  [[noreturn]] void refuse_row(const std::string& problem, const std::string& remedy) const;

 private:
  Row& row_;
  const FormatNames& names_;
};

struct RowFormat {
  std::string_view name;
  std::span<const std::string_view> fields;  // that it reads
  void (*convert)(FormatRow& row);
};

std::span<const RowFormat> row_formats();                 // by name
const RowFormat* find_row_format(std::string_view name);  // nullptr: no such format

// The format's name of a column that LLaMA-Factory calls by another: "prompt" is alpaca's "instruction".
std::string column_of_format(const RowFormat& format, const std::string& column);

// A message with our field names and roles: ShareGPT's {from, value}, parts with `value`, and what `names` says.
Value plain_message(const Value& message, const FormatNames& names);
// A list of them, or one; everything else is returned as it is.
Value plain_messages(const Value& messages, const FormatNames& names);

// What formats share.
Value message_of(const std::string& role, const Value& content);
// Lists of functions as chat templates read them; also a text with JSON.
Value tools_of(const Value& tools, const std::string& where);
// prompt + completion, or prompt + completion + label, or prompt + chosen + rejected, or messages.
void set_conversation(FormatRow& row, Value messages);

}  // namespace easydel::data
