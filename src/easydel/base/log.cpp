#include "easydel/base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <utility>

#include "easydel/base/json_text.h"
#include "easydel/base/log_fields.h"

namespace easydel::log {
namespace {

Level level_of_environment() {
  const char* word = std::getenv("EASYDEL_LOG");
  const std::string_view name = word ? word : "";
  if (name == "debug") return Level::debug;
  if (name == "info" || name.empty()) return Level::info;
  if (name == "warning") return Level::warning;
  if (name == "error") return Level::error;
  refuse("EASYDEL_LOG", str("'", name, "' is not a log level"), "known: debug, info, warning, error");
}

std::atomic<Level>& threshold() {
  static std::atomic<Level> level = level_of_environment();
  return level;
}

std::atomic<int> quiet_count = 0;  // living objects of Quiet

struct Sink {
  std::mutex mutex;
  std::function<void(Level, std::string_view)> function;
};
Sink& sink() {
  static Sink* const one = new Sink;  // never destroyed: threads may still log while the program ends
  return *one;
}

std::string_view prefix(Level level) {
  switch (level) {
    case Level::debug:
      return "debug: ";
    case Level::info:
      return "";
    case Level::warning:
      return "warning: ";
    case Level::error:
      return "error: ";
  }
  return "";
}

std::atomic<Format>& format() {
  static std::atomic<Format> one = Format::text;
  return one;
}

std::string_view name_of(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warning:
      return "warning";
    case Level::error:
      return "error";
  }
  return "";
}

std::string text_of(const Field& field, bool json) {
  if (const auto* number = std::get_if<int64_t>(&field.value)) return str(*number);
  if (const auto* number = std::get_if<double>(&field.value))
    return json && !std::isfinite(*number) ? "null" : str(*number);
  const std::string& text = std::get<std::string>(field.value);
  const bool plain =
      !text.empty() && text.find_first_of(" =\"\\") == std::string::npos && json_text(text).size() == text.size() + 2;
  return json || !plain ? json_text(text) : text;
}

// One line without its end. Text without fields stays as it is: the program's own messages may have several lines.
std::string line_of(Level level, std::string_view text, std::span<const Field> fields) {
  if (format() == Format::json) {
    std::string line = str("{\"time\": ", int64_t(std::time(nullptr)), ", \"level\": ", json_text(name_of(level)),
                           ", \"message\": ", json_text(text));
    for (const Field& field : fields) line += str(", ", json_text(field.name), ": ", text_of(field, true));
    return line + "}";
  }
  if (fields.empty()) return std::string(text);
  const std::string escaped = json_text(text);
  std::string line = escaped.substr(1, escaped.size() - 2);
  for (const Field& field : fields) line += str(" ", field.name, "=", text_of(field, false));
  return line;
}

void write_line(Level level, const std::string& body) {
  std::lock_guard lock(sink().mutex);
  if (sink().function) return sink().function(level, body);
  const std::string line = str(format() == Format::json ? "" : prefix(level), body, "\n");
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t wrote = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (wrote < 0 && errno != EINTR) return;
    if (wrote > 0) rest.remove_prefix(size_t(wrote));
  }
}

}  // namespace

void set_format(Format chosen) { format() = chosen; }

void set_level(Level level) { threshold() = level; }
bool enabled(Level level) {
  return level >= threshold().load(std::memory_order_relaxed) && (level == Level::error || quiet_count == 0);
}

Quiet::Quiet() { ++quiet_count; }
Quiet::~Quiet() { --quiet_count; }

void write(Level level, std::string_view text) { write(level, text, {}); }

void write(Level level, std::string_view text, std::span<const Field> fields) {
  if (enabled(level)) write_line(level, line_of(level, text, fields));
}

void write_at_every_level(std::string_view text) { write_line(Level::info, line_of(Level::info, text, {})); }

void set_sink(std::function<void(Level, std::string_view)> function) {
  std::lock_guard lock(sink().mutex);
  sink().function = std::move(function);
}

}  // namespace easydel::log
