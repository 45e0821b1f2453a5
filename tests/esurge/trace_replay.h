// Schedules that were written to a file, planned again without a model.
#pragma once

#include <string>
#include <string_view>

#include "support/data.h"

namespace easydel::test {

// The schedulers that are made while it lives write their traces into a folder of its own.
class TraceFile {
 public:
  TraceFile();
  ~TraceFile();
  fs::path path() const;  // of the trace of the one scheduler that was made
  std::string text() const;

 private:
  TemporaryFolder folder_;
};

// Makes the calls of a trace to a new scheduler, up to a line that was cut off at the end. Returns the first line that
// comes out otherwise, with the one of the trace; empty: there is none. UserError: it is not a trace, or it begins with
// what a restart found in a prefix cache.
std::string replay_trace(std::string_view lines);

}  // namespace easydel::test
