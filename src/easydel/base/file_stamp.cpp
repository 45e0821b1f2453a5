#include "easydel/base/file_stamp.h"

#include <sys/stat.h>

#include "easydel/base/file_operations.h"

namespace easydel::files {

Stamp stamp_of(const std::filesystem::path& path) {
  struct stat out = {};
  detail::step(Operation::look, path, "read", [&] { return ::stat(path.c_str(), &out); });
  return {uint64_t(out.st_dev), uint64_t(out.st_ino), uint64_t(out.st_size),
          int64_t(out.st_mtim.tv_sec) * 1'000'000'000 + out.st_mtim.tv_nsec};
}

}  // namespace easydel::files
