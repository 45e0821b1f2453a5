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

}  // namespace

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
