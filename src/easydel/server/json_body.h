// Bodies of requests: JSON within limits, read into structs by their field tables. Everything that is wrong with a body
// is one error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/config/fields.h"

namespace easydel::server {

// The body is not JSON, or not an object.
struct InvalidJson : UserError {
  explicit InvalidJson(std::string message) : UserError("", std::move(message)) {}
};

// simdjson reads so many bytes past the end of a body.
constexpr size_t json_padding = 64;

struct JsonLimits {
  int depth = 64;          // of lists and objects in each other
  int64_t nodes = 200000;  // values of all kinds; a Value takes some 120 bytes
  int64_t keys = 10000;    // of one object
};

// A list of token ids or several, which may be too long for Values: 4 bytes an id.
struct TokenLists {
  std::vector<std::vector<int32_t>> lists;
  bool nested = false;  // the body had a list of lists
};

// The object that the body is. Unlike parse_json: no NaN and Infinity, no number outside a double's range, and the
// limits above. UserError with the path of what is wrong as its `where`; InvalidJson. A body without `json_padding`
// bytes of spare capacity is copied first.
Value read_value(const std::string& body, const JsonLimits& limits = {});

// The same for an object whose member `tokens_key`, if it is a list that begins with an integer or with a list of
// integers, is read into `tokens` and left out of the Value.
Value read_value(const std::string& body, std::string_view tokens_key, TokenLists& tokens,
                 const JsonLimits& limits = {});

// Bytes that a value and what it holds take in memory.
size_t memory_of(const Value& value);
size_t memory_of(const TokenLists& tokens);

// Problems without the line that says where in a file they are.
[[noreturn]] void throw_problems(const config::Problems& problems);

template <config::Sectioned T>
void read_body(const std::string& body, T& out, const JsonLimits& limits = {}) {
  config::Problems problems("");
  config::read_section(config::section_of<T>(), read_value(body, limits), &out, "", problems);
  if (!problems.empty()) throw_problems(problems);
}

}  // namespace easydel::server
