// Log lines of the library. They go to stderr as "warning: ..." and so on; the command line shows them around its
// progress bar. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "easydel/base/error.h"

namespace easydel::log {

enum class Level { debug, info, warning, error };

void set_level(Level level);  // default info; EASYDEL_LOG=debug|info|warning|error sets it at start
bool enabled(Level level);
void write(Level level, std::string_view text);
// Sends lines to `sink` instead of stderr (to redraw a progress bar, or in a test); null: stderr again.
void set_sink(std::function<void(Level, std::string_view)> sink);

// While one lives, lines below errors are not written, whichever thread logs them: for work that will be done again and
// will report then.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

template <class... Parts>
void debug(const Parts&... parts) {
  if (enabled(Level::debug)) write(Level::debug, str(parts...));
}
template <class... Parts>
void info(const Parts&... parts) {
  if (enabled(Level::info)) write(Level::info, str(parts...));
}
template <class... Parts>
void warning(const Parts&... parts) {
  if (enabled(Level::warning)) write(Level::warning, str(parts...));
}
template <class... Parts>
void error(const Parts&... parts) {
  if (enabled(Level::error)) write(Level::error, str(parts...));
}

}  // namespace easydel::log
