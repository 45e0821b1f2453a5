// Log lines with named fields, for programs that read them: "text key=value" or one JSON object a line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "easydel/base/log.h"

namespace easydel::log {

enum class Format { text, json };

struct Field {
  std::string_view name;
  std::variant<std::string, int64_t, double> value;
};

// How all lines are written from now on, those without fields too; default text. JSON lines have "level" and "message"
// before the fields, and "time" in seconds since 1970.
void set_format(Format format);
// Control characters are escaped in both formats, so that nobody can forge a line; invalid UTF-8 becomes U+FFFD in
// JSON.
void write(Level level, std::string_view text, std::span<const Field> fields);
// A line that is not an error and must be seen even where errors alone are logged, as on ranks other than the first.
void write_at_every_level(std::string_view text);

}  // namespace easydel::log
