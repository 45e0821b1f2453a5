#include "easydel/data/row_steps.h"

#include <algorithm>
#include <array>
#include <exception>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"

namespace easydel::data {
namespace {

constexpr std::array message_lists{"messages", "conversations", "prompt", "completion", "chosen", "rejected"};

bool is_ours(const std::string& role) {
  static constexpr std::array roles{"system", "user", "assistant", "tool", "function_call", "observation", "developer"};
  return std::ranges::find(roles, role) != roles.end();
}

// `roles` may say {theirs: ours}, or as Axolotl does {ours: [theirs, ...]}.
std::map<std::string, std::string> roles_of(const std::map<std::string, config::Many<std::string>>& given) {
  std::map<std::string, std::string> out;
  for (const auto& [name, words] : given) {
    const bool to_ours = words.size() == 1 && is_ours(words[0]);
    if (to_ours)
      out[name] = words[0];
    else
      for (const std::string& word : words) out[word] = name;
  }
  return out;
}

void rename_in(Value& fields, const std::string& from, const std::string& to, bool& found) {
  if (fields.is_list()) {
    for (Value& item : fields.items) rename_in(item, from, to, found);
    return;
  }
  if (!fields.is_map()) return;
  // A name may contain a dot itself.
  for (auto& [name, value] : fields.entries)
    if (name == from) {
      name = to;
      found = true;
      return;
    }
  const size_t dot = from.find('.');
  if (dot == std::string::npos) return;
  const std::string below = from.substr(0, dot);
  const std::string rest = to.starts_with(below + ".") ? to.substr(dot + 1) : to;
  if (Value* const child = fields.find(below)) rename_in(*child, from.substr(dot + 1), rest, found);
}

Value value_of(const text::RowTemplate& code, const Row& row) {
  try {
    return code.value(row.fields);
  } catch (const UserError& error) {
    refuse(row.where, error.headline(), error.remedy);
  }
}

}  // namespace

std::optional<RowSteps::Replacement> RowSteps::replacement(const std::optional<std::string>& function,
                                                           const std::string& key) {
  if (!function) return std::nullopt;
  if (is_row_template(*function)) return Replacement{key, text::RowTemplate(files::read(*function), key), {}};
  const RowFunction* const found = find_row_function(*function);
  if (!found) refuse(key, "there is no row function '" + *function + "'", row_function_remedy());
  return Replacement{key, std::nullopt, *found};
}

RowSteps::RowSteps(const InformConfig& inform, std::string name, const std::optional<std::string>& tokenize_callback)
    : name_(std::move(name)) {
  const auto step = [&](const char* key, const std::string& source) {
    const std::string where = name_ + "." + key;
    return Step{where, text::RowTemplate(source, where)};
  };
  preprocessing_ = replacement(inform.preprocessing_fn, name_ + ".preprocessing_fn");
  callback_ = replacement(inform.format_callback, name_ + ".format_callback");
  tokenize_ = replacement(tokenize_callback, "mixture.tokenize_callback");
  if (inform.filter) filter_ = step("filter", *inform.filter);
  for (const auto& [field, source] : inform.map) map_.push_back({field, step(("map." + field).c_str(), source)});
  renames_.assign(inform.format_fields.begin(), inform.format_fields.end());
  if (inform.format) format_ = find_row_format(canonical(*inform.format));
  for (const auto& [column, field] : inform.columns)
    names_.columns[format_ ? column_of_format(*format_, column) : column] = field;
  names_.roles = roles_of(inform.roles);
  names_.message_fields = inform.message_fields;
  names_.inform = name_;
}

bool RowSteps::replace(const std::optional<Replacement>& step, Row& row) {
  if (!step) return true;
  static constexpr auto remedy = R"(it renders one JSON object, as in {"text": {{ text | tojson }}})";
  Value fields;
  if (step->code) {
    fields = value_of(*step->code, row);
    if (fields.is_text()) {
      try {
        fields = parse_json(fields.scalar, step->key);
      } catch (const UserError& error) {
        refuse(row.where, step->key + " does not write a row: " + error.problem, remedy);
      }
    }
    if (!fields.is_map()) refuse(row.where, step->key + " gives no row", remedy);
  } else {
    std::optional<Value> made;
    try {
      made = step->function(row.fields);
    } catch (const UserError& error) {
      refuse(row.where, step->key + ": " + error.headline(), error.remedy);
    } catch (const Bug&) {
      throw;
    } catch (const std::exception& error) {
      refuse(row.where, step->key + ": the function failed: " + error.what());
    }
    if (!made) return false;
    if (!made->is_map()) refuse(row.where, step->key + " gives no row", "the function returns a map of fields");
    fields = std::move(*made);
  }
  row.fields = std::move(fields);
  return true;
}

void RowSteps::rename(Row& row) const {
  for (const auto& [from, to] : renames_) {
    bool found = false;
    rename_in(row.fields, from, to, found);
    if (found) continue;
    std::vector<std::string> there;
    for (const auto& [field, value] : row.fields.entries) there.push_back(value.is_null() ? field + " (null)" : field);
    refuse(row.where,
           str("the row has no field '", from, "'; it has: ", there.empty() ? "no fields" : join(there, ", ")),
           str("drop it from ", name_, ".format_fields"));
  }
}

std::optional<Row> RowSteps::apply(Row row) const {
  row.fields.key_places.clear();
  if (!replace(preprocessing_, row) || !replace(callback_, row)) return std::nullopt;
  rename(row);
  if (filter_) {
    try {
      if (!filter_->code.is_true(row.fields)) return std::nullopt;
    } catch (const UserError& error) {
      refuse(row.where, error.headline(), error.remedy);
    }
  }
  if (!map_.empty()) {
    std::vector<Value> values;  // of the row before any of them is set
    for (const Mapped& mapped : map_) values.push_back(value_of(mapped.step.code, row));
    for (size_t i = 0; i < map_.size(); ++i) row.fields.set(map_[i].field, std::move(values[i]));
  }
  if (format_) {
    FormatRow formatted(row, names_);
    try {
      format_->convert(formatted);
    } catch (const UserError& error) {
      if (error.where == row.where) throw;
      refuse(row.where, error.headline(), error.remedy);
    }
  } else if (!names_.roles.empty() || !names_.message_fields.empty()) {
    for (const char* field : message_lists)
      if (Value* const list = row.fields.find(field)) *list = plain_messages(*list, names_);
  }
  if (!replace(tokenize_, row)) return std::nullopt;
  return row;
}

std::vector<std::string> RowSteps::fields(std::vector<std::string> following) const {
  if (preprocessing_ || callback_ || tokenize_ || filter_ || !map_.empty()) return {};
  for (const auto& [from, to] : renames_) {
    following.push_back(from);
    following.push_back(from.substr(0, from.find('.')));
  }
  if (format_)
    for (const std::string_view field : format_->fields) following.emplace_back(field);
  for (const auto& [column, field] : names_.columns) following.push_back(field);
  return following;
}

}  // namespace easydel::data
