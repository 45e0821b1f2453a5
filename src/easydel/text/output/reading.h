// Functions shared by readers of Incoming: markers, names, JSON and Python values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/output/incoming.h"

namespace easydel::text {

using Take = std::function<void(std::string_view)>;
using Markers = std::vector<std::string>;

constexpr bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

inline constexpr size_t none_index = size_t(-1);

// The index of the longest of `markers` that comes next, or none_index. Does not take it.
Task<size_t> next_is(Incoming& in, const Markers& markers);
// Takes `marker` if it comes next.
Task<bool> take_if(Incoming& in, std::string_view marker);
Task<> skip_space(Incoming& in);

// Passes everything before one of `markers` to `take`. Returns the index of the marker, which is not taken, or
// none_index at the end of the text. Never passes on text that may still become a marker.
Task<size_t> read_until(Incoming& in, const Markers& markers, const Take& take);
// The same into a string of at most `limit` bytes; none_index also if it would be longer.
Task<size_t> read_until(Incoming& in, const Markers& markers, std::string& out, size_t limit);

// A function's name: letters, digits, "_-./:" and non-ASCII characters; "": none comes next.
Task<std::string> read_name(Incoming& in);

enum class Notation : uint8_t { json, python };  // python: literals, and also JSON's true, false, null
// Reads one value and passes it on as JSON while it arrives, spaced as by json.dumps. Returns false if it is not a
// value or nested too deep; text that was taken stays taken.
Task<bool> read_value(Incoming& in, Notation notation, const Take& take);
// Reads a string with its quotes and decodes it.
Task<bool> read_string(Incoming& in, Notation notation, std::string& out);

std::string json_quoted(std::string_view text);  // "text" as json.dumps(ensure_ascii=False) writes it
void append_json_escaped(std::string& out, std::string_view text);
// Converts a complete text to one JSON value; nullopt: not a value, or something follows it.
std::optional<std::string> value_as_json(std::string_view text, Notation notation);

}  // namespace easydel::text
