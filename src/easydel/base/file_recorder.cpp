#include <mutex>

#include "easydel/base/file_operations.h"

namespace easydel::files {

struct detail::Recording {
  fs::path folder;  // absolute
  std::mutex mutex;
  std::map<std::string, Recorder::Entry> entries;
};

namespace {

struct Recordings {
  std::mutex mutex;
  std::vector<std::shared_ptr<detail::Recording>> all;
};
Recordings& recordings() {
  static Recordings one;
  return one;
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end() && in_path != path.end();
}

}  // namespace

std::shared_ptr<detail::Recording> detail::recording_of(const fs::path& path) {
  const std::lock_guard lock(recordings().mutex);
  if (recordings().all.empty()) return nullptr;
  const fs::path whole = files::absolute(path);
  for (const auto& one : recordings().all)
    if (is_below(whole, one->folder)) return one;
  return nullptr;
}

void detail::record(Recording& recording, const fs::path& path, Recorder::Entry entry) {
  const std::lock_guard lock(recording.mutex);
  recording.entries[files::absolute(path).lexically_relative(recording.folder).generic_string()] = std::move(entry);
}

Recorder::Recorder(const fs::path& folder) : recording_(std::make_shared<detail::Recording>()) {
  recording_->folder = files::absolute(folder);
  const std::lock_guard lock(recordings().mutex);
  recordings().all.push_back(recording_);
}

Recorder::~Recorder() {
  const std::lock_guard lock(recordings().mutex);
  std::erase(recordings().all, recording_);
}

std::map<std::string, Recorder::Entry> Recorder::files() const {
  const std::lock_guard lock(recording_->mutex);
  return recording_->entries;
}

}  // namespace easydel::files
