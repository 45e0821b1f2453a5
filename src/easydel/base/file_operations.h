// What the files of base share: each system call as a step that the fault hook may fail. Only base includes it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::files::detail {

// Throws UserError "path: cannot <verb>: No space left on device" with what helps against it.
[[noreturn]] void fail(const fs::path& path, std::string_view verb, int error);

// The one place that every step passes: 0, or the errno that the fault hook wants it to fail with.
int before(Operation operation, const fs::path& path);

class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return file_; }

 private:
  int file_;
};

// Runs one system call after the hook; throws with the verb of the operation.
template <class Call>
auto step(Operation operation, const fs::path& path, std::string_view verb, Call call) {
  if (const int error = before(operation, path)) fail(path, verb, error);
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) fail(path, verb, errno);
  }
}

inline fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// What records the folder that `path` is in; null: nothing does.
std::shared_ptr<Recording> recording_of(const fs::path& path);
void record(Recording& recording, const fs::path& path, Recorder::Entry entry);

}  // namespace easydel::files::detail
