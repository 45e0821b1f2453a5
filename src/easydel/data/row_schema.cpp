#include "easydel/data/row_schema.h"

#include <algorithm>
#include <charconv>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

using columnar::RowType;
using Kind = RowType::Kind;

// 1 and -3, but neither 1.0 nor 1e3, nor what int64 cannot hold.
bool is_integer(const std::string& scalar) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(scalar.data(), scalar.data() + scalar.size(), number);
  return error == std::errc() && end == scalar.data() + scalar.size();
}

// A double would not keep its digits.
bool is_huge_integer(const std::string& scalar) {
  return scalar.find_first_not_of("-0123456789") == std::string::npos && !is_integer(scalar);
}

Kind kind_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return Kind::null;
    case Value::Kind::text:
      return Kind::text;
    case Value::Kind::list:
      return Kind::list;
    case Value::Kind::map:
      return value.entries.empty() ? Kind::json : Kind::map;  // Parquet has no maps without fields
    case Value::Kind::plain:
      if (value.as_bool()) return Kind::boolean;
      if (is_integer(value.scalar)) return Kind::integer;
      return value.as_double() && !is_huge_integer(value.scalar) ? Kind::number : Kind::json;
  }
  throw Bug("a value without a kind");
}

bool is_number(Kind kind) { return kind == Kind::integer || kind == Kind::number; }

void widen(RowType& type, const Value& value, bool is_column) {
  const Kind kind = kind_of(value);
  if (kind == Kind::null || type.kind == Kind::json) return;
  if (type.kind == Kind::null) {
    type.kind = kind;
    if (kind == Kind::list) type.parts.resize(1);
    if (kind == Kind::map) {
      for (const auto& [name, part] : value.entries) type.names.push_back(name);
      type.parts.resize(type.names.size());
    }
  }
  const bool has_same_keys =
      kind != Kind::map ||
      (value.entries.size() == type.names.size() &&
       std::ranges::all_of(type.names, [&](const std::string& name) { return value.find(name) != nullptr; }));
  if (is_column && is_number(kind) && is_number(type.kind)) {
    if (kind != type.kind) type.kind = Kind::number;
  } else if (kind != type.kind || !has_same_keys) {
    type = {Kind::json, {}, {}};
  } else if (kind == Kind::list) {
    for (const Value& item : value.items) widen(type.parts[0], item, false);
  } else if (kind == Kind::map) {
    for (size_t i = 0; i < type.names.size(); ++i) widen(type.parts[i], *value.find(type.names[i]), false);
  }
}

Value scalar_feature(const char* dtype) {
  Value out = Value::map();
  out.set("dtype", Value::text(dtype));
  out.set("_type", Value::text("Value"));
  return out;
}

Value feature_of(const RowType& type) {
  Value out = Value::map();
  switch (type.kind) {
    case Kind::null:
      return scalar_feature("null");
    case Kind::boolean:
      return scalar_feature("bool");
    case Kind::integer:
      return scalar_feature("int64");
    case Kind::number:
      return scalar_feature("float64");
    case Kind::text:
      return scalar_feature("string");
    case Kind::json:
      out.set("_type", Value::text("Json"));
      return out;
    case Kind::image:
      out.set("_type", Value::text("Image"));
      return out;
    case Kind::list:
      // The forms that its versions before 4 know, too; a Sequence of maps would be a map of lists.
      if (type.parts[0].kind == Kind::map) {
        out = Value::list();
        out.items.push_back(feature_of(type.parts[0]));
        return out;
      }
      out.set("feature", feature_of(type.parts[0]));
      out.set("_type", Value::text("Sequence"));
      return out;
    case Kind::map:
      for (size_t i = 0; i < type.names.size(); ++i) out.set(type.names[i], feature_of(type.parts[i]));
      return out;
  }
  throw Bug("a kind of values that `datasets` does not know");
}

}  // namespace

void RowSchema::add(const Value& fields, const std::string& where) {
  for (const auto& [name, value] : fields.entries) {
    auto column = std::ranges::find(columns_, name, &std::pair<std::string, RowType>::first);
    if (column == columns_.end()) column = columns_.insert(columns_.end(), {name, {}});
    RowType& type = column->second;
    if (std::ranges::find(images_, name) == images_.end()) {
      widen(type, value, true);
    } else if (!value.is_null()) {
      const RowType one{Kind::image, {}, {}}, image = value.is_list() ? RowType{Kind::list, {}, {one}} : one;
      if (type.kind != Kind::null && type != image)
        refuse(where, "field '" + name + "' is one image in some rows and a list of images in others",
               "give lists in all rows");
      type = image;
    }
  }
}

Value RowSchema::features() const {
  Value out = Value::map();
  for (const auto& [name, type] : columns_) out.set(name, feature_of(type));
  return out;
}

std::string RowSchema::nested_column() const {
  for (const auto& [name, type] : columns_)
    if (type.kind == Kind::list || type.kind == Kind::map || type.kind == Kind::json || type.kind == Kind::image)
      return name;
  return "";
}

}  // namespace easydel::data
