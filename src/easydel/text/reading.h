// What readers of Incoming have in common: markers, names, JSON and Python values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/incoming.h"

namespace easydel::text {

using Take = std::function<void(std::string_view)>;
using Markers = std::vector<std::string>;

constexpr bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

inline constexpr size_t kNone = static_cast<size_t>(-1);

// Which of `markers` stands next, the longest one; kNone. It is not taken.
Task<size_t> next_is(Incoming& in, const Markers& markers);
// Takes `marker` if it stands next.
Task<bool> take_if(Incoming& in, std::string_view marker);
Task<> skip_space(Incoming& in);

// Gives everything before one of `markers` to `take`; the index of the marker, which is not taken, or kNone where the
// text ended. Never gives out what may yet become a marker.
Task<size_t> read_until(Incoming& in, const Markers& markers, const Take& take);
// The same into a string of at most `limit` bytes; kNone also where it would be longer.
Task<size_t> read_until(Incoming& in, const Markers& markers, std::string& out, size_t limit);

// A function's name: letters, digits, "_-./:" and what is no ASCII; "" where none stands.
Task<std::string> read_name(Incoming& in);

enum class Notation : uint8_t { json, python };  // python: literals, and JSON's true, false, null beside them
// One value, given out as JSON while it arrives, spaced as json.dumps does. false: it is none, or nested too deep; what
// was taken of it is taken.
Task<bool> read_value(Incoming& in, Notation notation, const Take& take);
// A string with its quotes, decoded.
Task<bool> read_string(Incoming& in, Notation notation, std::string& out);

std::string json_quoted(std::string_view text);  // "text" as json.dumps(ensure_ascii=False) writes it
void append_json_escaped(std::string& out, std::string_view text);
// A whole text as one value in JSON; nullopt where it is none, or something follows it.
std::optional<std::string> value_as_json(std::string_view text, Notation notation);

}  // namespace easydel::text
