// Reads fields of a tokenizer file; errors name the part.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::text {

inline constexpr const char* fetch_tokenizer_again = "fetch the tokenizer again";

inline std::string string_field(const Value& node, std::string_view key, std::optional<std::string> fallback = {}) {
  const Value* value = node.find(key);
  if (value && value->is_text()) return value->scalar;
  if ((!value || value->is_null()) && fallback) return *fallback;
  refuse("tokenizer.json", str("'", key, "' is missing or no string"), fetch_tokenizer_again);
}

inline bool bool_field(const Value& node, std::string_view key, bool fallback) {
  const Value* value = node.find(key);
  if (!value || value->is_null()) return fallback;
  if (auto flag = value->as_bool()) return *flag;
  refuse("tokenizer.json", str("'", key, "' is neither true nor false"), fetch_tokenizer_again);
}

inline int64_t int_field(const Value& node, std::string_view key, std::optional<int64_t> fallback = {}) {
  const Value* value = node.find(key);
  if ((!value || value->is_null()) && fallback) return *fallback;
  if (value)
    if (auto number = value->as_int()) return *number;
  refuse("tokenizer.json", str("'", key, "' is missing or no whole number"), fetch_tokenizer_again);
}

inline const Value& list_field(const Value& node, std::string_view key) {
  const Value* value = node.find(key);
  if (value && value->is_list()) return *value;
  refuse("tokenizer.json", str("'", key, "' is missing or no list"), fetch_tokenizer_again);
}

// For the catch of a reader: the error of a part says what is wrong; this adds `name`, the file.
[[noreturn]] inline void rethrow_at(const std::string& name, const UserError& error) {
  if (error.where == "tokenizer.json") refuse(name, error.problem, error.remedy);
  throw error;
}

inline bool is_absent(const Value* node) { return !node || node->is_null(); }

}  // namespace easydel::text
