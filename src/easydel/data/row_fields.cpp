#include "easydel/data/row_fields.h"

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/data/token_rows.h"

namespace easydel::data {

namespace {

std::string names_of(const Value& fields) {
  std::vector<std::string> names;
  for (const auto& [name, value] : fields.entries) names.push_back(value.is_null() ? name + " (null)" : name);
  return names.empty() ? "no fields" : join(names, ", ");
}

// A mark or a number of a row of tokens, as it is or as a list of one (mixture.save writes lists).
Value single(const Value& value) { return value.is_list() && value.items.size() == 1 ? value.items[0] : value; }

// A pair or a marked answer as ready tokens.
std::optional<TypedRow> typed_answers(const Row& row, const FieldRules& rules) {
  const auto is_meant = [&](RowKind kind) {
    return rules.kind ? *rules.kind == kind : rules.taken.empty() || rules.taken.has(kind);
  };
  TypedRow out;
  out.where = row.where;
  if (is_meant(RowKind::preference) && has_token_pair(row) && !has(row.fields, "chosen")) {
    out.kind = RowKind::preference;
    if (const Value* const margin = row.fields.find("margin"); margin && (!margin->is_list() || !margin->items.empty()))
      out.margin = single(*margin);
  } else if (is_meant(RowKind::unpaired) && has_token_completion(row) && !has(row.fields, "completion")) {
    out.kind = RowKind::unpaired;
    if (!has(row.fields, "label")) no_field(row, "label", "give true for a good completion and false for a bad one");
    out.label = mark_of(row, single(*row.fields.find("label")), "label");
  } else {
    return std::nullopt;
  }
  out.answers = std::make_shared<const TokenAnswers>(token_answers(row));
  return out;
}

}  // namespace

Value mark_of(const Row& row, const Value& value, const std::string& name) {
  const auto number = value.as_int();
  if (value.as_bool() || (number && (*number == 0 || *number == 1)))
    return Value::boolean(value.as_bool().value_or(number == 1));
  refuse(row.where, str("field '", name, "' holds ", to_yaml_flow(value), ", which is neither true nor false"),
         "give true for a good completion and false for a bad one");
}

void no_field(const Row& row, const std::string& name, const std::string& remedy) {
  if (row.fields.find(name)) refuse(row.where, str("field '", name, "' is null"), "give it a value, or drop the row");
  refuse(row.where, str("the row has no field '", name, "'; it has: ", names_of(row.fields)), remedy);
}

bool has(const Value& fields, std::string_view name) {
  const Value* value = fields.find(name);
  return value && !value->is_null();
}

double weight_of(const Row& row, const FieldRules& rules) {
  if (!rules.weight_field) return 1;
  const Value* const value = row.fields.find(*rules.weight_field);
  if (!value || value->is_null())
    no_field(row, *rules.weight_field, str("give every row a weight, or drop ", rules.inform, ".weight_field"));
  const auto weight = value->as_double();
  if (!weight || !std::isfinite(*weight) || *weight < 0)
    refuse(row.where, str("field '", *rules.weight_field, "' holds ", to_yaml_flow(*value), ", which is not a weight"),
           "give a number from 0; 0 leaves the row out of the loss");
  return *weight;
}

std::optional<TypedRow> typed_parts(const Row& row, const FieldRules& rules) {
  TypedRow out;
  out.where = row.where;
  if (rules.has_segments) {
    out.segments = *row.fields.find("segments");
    return out;
  }
  if (std::optional<TypedRow> answers = typed_answers(row, rules)) return answers;
  if (rules.kind && *rules.kind != RowKind::tokens) return std::nullopt;
  if (!rules.kind && rules.taken.has(RowKind::labelled)) return std::nullopt;  // its words may be called tokens
  const std::string ids = ids_field(row, rules.tokens_field);
  const bool has_text = has(row.fields, "messages") || has(row.fields, rules.target_field) || rules.content_field;
  if (ids.empty() && rules.kind == RowKind::tokens)
    no_field(row, rules.tokens_field, "name the field with the tokens by mixture.tokens_field_name");
  if (ids.empty() || (has_text && !rules.kind)) return std::nullopt;
  out.kind = RowKind::tokens;
  out.tokens = std::make_shared<const TokenRow>(token_row(row, ids));
  return out;
}

}  // namespace easydel::data
