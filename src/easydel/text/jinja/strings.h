// Python's string operations, by characters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace easydel::text::jinja {

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);
// sides: 1: left, 2: right, 3: both; null `set`: whitespace.
std::string strip(std::string_view text, const std::string* set, int sides);
std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t max_count);
std::vector<std::string> split(std::string_view text, const std::string* separator, int64_t max_count, bool from_right);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);
std::string centered(const std::string& text, int64_t width, const std::string& fill, char align);

}  // namespace easydel::text::jinja
