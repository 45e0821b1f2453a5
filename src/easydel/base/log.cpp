#include "easydel/base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <utility>

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

}  // namespace

void set_level(Level level) { threshold() = level; }
bool enabled(Level level) {
  return level >= threshold().load(std::memory_order_relaxed) && (level == Level::error || quiet_count == 0);
}

Quiet::Quiet() { ++quiet_count; }
Quiet::~Quiet() { --quiet_count; }

void write(Level level, std::string_view text) {
  std::lock_guard lock(sink().mutex);
  if (sink().function) return sink().function(level, text);
  std::string line = str(prefix(level), text, "\n");
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t wrote = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (wrote < 0 && errno != EINTR) return;
    if (wrote > 0) rest.remove_prefix(size_t(wrote));
  }
}

void set_sink(std::function<void(Level, std::string_view)> function) {
  std::lock_guard lock(sink().mutex);
  sink().function = std::move(function);
}

}  // namespace easydel::log
