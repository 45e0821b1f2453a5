// The list of formats, and what they share.
#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/data/row_format.h"

namespace easydel::data {

extern const RowFormat alpaca_format, dolly_format, hh_format, kto_format, openai_format, segments_format,
    sharegpt_format;

std::span<const RowFormat> row_formats() {
  static const std::array all{alpaca_format, dolly_format,    hh_format,      kto_format,
                              openai_format, segments_format, sharegpt_format};
  return all;
}

const RowFormat* find_row_format(std::string_view name) {
  for (const RowFormat& format : row_formats())
    if (format.name == name) return &format;
  return nullptr;
}

std::string column_of_format(const RowFormat& format, const std::string& column) {
  const auto has = [&](std::string_view name) { return std::ranges::find(format.fields, name) != format.fields.end(); };
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> others{{{"prompt", "instruction"},
                                                                                        {"query", "input"},
                                                                                        {"query", "context"},
                                                                                        {"response", "output"},
                                                                                        {"response", "completion"},
                                                                                        {"messages", "conversations"},
                                                                                        {"conversations", "messages"},
                                                                                        {"kto_tag", "label"},
                                                                                        {"ranking", "chosen"}}};
  if (has(column)) return column;
  for (const auto& [theirs, name] : others)
    if (theirs == column && has(name)) return std::string(name);
  return "";
}

Value message_of(const std::string& role, const Value& content) {
  Value out = Value::map();
  out.set("role", Value::text(role));
  out.set("content", content);
  return out;
}

namespace {

// Roles of ShareGPT's files by ours.
std::string role_of(const std::string& role, const FormatNames& names) {
  if (const auto found = names.roles.find(role); found != names.roles.end()) return found->second;
  if (role == "human") return "user";
  if (role == "gpt") return "assistant";
  return role;
}

// Parts {type: text, value: ...} as {type: text, text: ...}.
void name_texts(Value& content) {
  if (!content.is_list()) return;
  for (Value& part : content.items) {
    if (!part.is_map() || part.find("text")) continue;
    const Value* const type = part.find("type");
    if (!type || type->scalar != "text") continue;
    for (auto& [name, value] : part.entries)
      if (name == "value") name = "text";
  }
}

// One text if the content is text parts without marks of their own.
Value joined_content(const Value& content) {
  if (!content.is_list() || content.items.empty()) return content;
  std::string out;
  for (const Value& part : content.items) {
    const Value* const text = part.is_map() && part.entries.size() == 2 ? part.find("text") : nullptr;
    if (!text || !text->is_text()) return content;
    out += text->scalar;
  }
  return Value::text(out);
}

// {name, arguments} of a call, which may be written as JSON.
Value call_of(const Value& call, const std::string& where) {
  Value function = call.is_text() ? parse_json(call.scalar, where) : call;
  if (Value* const inner = function.is_map() ? function.find("function") : nullptr) {
    Value copy = *inner;
    function = std::move(copy);
  }
  if (!function.is_map() || !function.find("name"))
    refuse(where, "a call is not an object with name and arguments",
           R"(as in {"name": "weather", "arguments": {"city": "Bern"}})");
  Value out = Value::map();
  out.set("type", Value::text("function"));
  out.set("function", std::move(function));
  return out;
}

Value calls_of(const Value& text, const std::string& where) {
  const Value given = text.is_text() ? parse_json(text.scalar, where) : text;
  Value out = Value::list();
  for (const Value& call : given.is_list() ? given.items : std::vector<Value>{given})
    out.items.push_back(call_of(call, where));
  return out;
}

}  // namespace

Value plain_message(const Value& message, const FormatNames& names) {
  if (!message.is_map()) return message;
  Value out = message;
  out.key_places.clear();
  const auto rename = [&](std::string_view theirs, const char* ours) {
    if (out.find(ours)) return;
    for (auto& [name, value] : out.entries)
      if (name == theirs) name = ours;
  };
  for (const auto& [ours, theirs] : names.message_fields) rename(theirs, ours.c_str());
  rename("from", "role");
  rename("value", "content");
  if (Value* const role = out.find("role"); role && role->is_text()) *role = Value::text(role_of(role->scalar, names));
  if (Value* const content = out.find("content")) {
    const bool is_renamed = content->is_list();
    name_texts(*content);
    if (is_renamed) *content = joined_content(*content);
  }
  return out;
}

Value plain_messages(const Value& messages, const FormatNames& names) {
  if (messages.is_map()) return plain_message(messages, names);
  if (!messages.is_list()) return messages;
  Value out = messages;
  for (Value& message : out.items) message = plain_message(message, names);
  return out;
}

const Value* FormatRow::find(std::string_view field) const {
  const Value* const value = row_.fields.find(name_of(field));
  return value && !value->is_null() ? value : nullptr;
}

std::string FormatRow::name_of(std::string_view field) const {
  const auto found = names_.columns.find(std::string(field));
  return found == names_.columns.end() ? std::string(field) : found->second;
}

void FormatRow::refuse_row(const std::string& problem, const std::string& remedy) const {
  refuse(row_.where, problem, remedy);
}

const Value& FormatRow::need(std::string_view field) const {
  if (const Value* const value = find(field)) return *value;
  std::vector<std::string> there;
  for (const auto& [name, value] : row_.fields.entries) there.push_back(name);
  refuse_row(str("the row has no field '", name_of(field), "'; it has: ", join(there, ", ")),
             str("name it with ", names_.inform, ".columns: {", field, ": your_name}"));
}

std::string FormatRow::text(std::string_view field) const {
  const Value& value = need(field);
  if (value.is_list() || value.is_map())
    refuse_row(str("field '", name_of(field), "' is not a text"),
               str("name another with ", names_.inform, ".columns: {", field, ": your_name}"));
  return value.scalar;
}

std::string FormatRow::text_or_empty(std::string_view field) const { return find(field) ? text(field) : ""; }

Value FormatRow::messages(std::string_view field) const {
  const Value& list = need(field);
  if (!list.is_list())
    refuse_row(str("field '", name_of(field), "' is not a list of messages"),
               str("name another with ", names_.inform, ".columns: {", field, ": your_name}"));
  Value out = Value::list();
  for (const Value& one : list.items) out.items.push_back(message(one));
  return out;
}

Value FormatRow::message(const Value& given) const {
  Value out = plain_message(given, names_);
  const Value* const role = out.is_map() ? out.find("role") : nullptr;
  if (!role || !role->is_text())
    refuse_row("a message has no role",
               str("name its fields with ", names_.inform, ".message_fields: {role: your_name, content: your_name}"));
  if (role->scalar == "observation" || role->scalar == "function") out.set("role", Value::text("tool"));
  if (role->scalar != "function_call") return out;
  Value call = Value::map();
  call.set("role", Value::text("assistant"));
  call.set("content", Value::text(""));
  const Value* const content = out.find("content");
  call.set("tool_calls", calls_of(content ? *content : Value(), row_.where + ": function_call"));
  return call;
}

void FormatRow::set(std::string_view name, Value value) { row_.fields.set(name, std::move(value)); }

void FormatRow::drop(std::string_view field) {
  const std::string name = name_of(field);
  std::erase_if(row_.fields.entries, [&](const auto& entry) { return entry.first == name; });
  row_.fields.key_places.clear();
}

Value tools_of(const Value& tools, const std::string& where) {
  if (tools.is_text() && tools.scalar.empty()) return {};
  Value list = tools.is_text() ? parse_json(tools.scalar, where) : tools;
  if (list.is_map()) {
    Value one = Value::list();
    one.items.push_back(std::move(list));
    list = std::move(one);
  }
  if (!list.is_list() || list.items.empty()) return {};
  for (Value& tool : list.items) {
    if (!tool.is_map() || tool.find("function") || !tool.find("name")) continue;
    Value wrapped = Value::map();
    wrapped.set("type", Value::text("function"));
    wrapped.set("function", std::move(tool));
    tool = std::move(wrapped);
  }
  return list;
}

void set_conversation(FormatRow& row, Value messages) {
  const auto split_answer = [&] {
    if (messages.items.empty() || messages.items.back().find("role")->scalar != "assistant")
      row.refuse_row("the conversation does not end with an answer of the assistant",
                     "end it with one, or drop the row");
    Value answer = Value::list();
    answer.items.push_back(std::move(messages.items.back()));
    messages.items.pop_back();
    return answer;
  };
  const auto as_list = [&](std::string_view field) {
    const Value& given = row.need(field);
    if (given.is_list()) return row.messages(field);
    Value out = Value::list();
    out.items.push_back(given.is_map() ? row.message(given) : message_of("assistant", given));
    return out;
  };
  const Value* const label = row.find("label");
  if (row.find("chosen") && row.find("rejected")) {
    Value chosen = as_list("chosen"), rejected = as_list("rejected");
    row.set("prompt", std::move(messages));
    row.set("chosen", std::move(chosen));
    row.set("rejected", std::move(rejected));
  } else if (label && (label->as_bool() || label->as_int())) {
    const Value mark = *label;
    row.set("completion", split_answer());
    row.set("prompt", std::move(messages));
    row.set("label", mark);
  } else {
    row.set("messages", std::move(messages));
    return;
  }
  for (const char* field : {"messages", "conversations"}) row.drop(field);
}

}  // namespace easydel::data
