#include "easydel/base/file_stamp.h"

#include <sys/stat.h>

#include "easydel/base/file_operations.h"
#include "easydel/base/ranged_file.h"

namespace easydel::files {

Stamp stamp_of(const std::filesystem::path& path) {
  if (const auto elsewhere = ranged(path)) {
    const std::string digest = sha256(path.string() + "\n" + elsewhere->version());
    constexpr size_t digits = 15;  // fit into int64
    return {0, std::stoull(digest.substr(0, digits), nullptr, 16), elsewhere->size(),
            std::stoll(digest.substr(digits, digits), nullptr, 16)};
  }
  struct stat out = {};
  detail::step(Operation::look, path, "read", [&] { return ::stat(path.c_str(), &out); });
  return {uint64_t(out.st_dev), uint64_t(out.st_ino), uint64_t(out.st_size),
          int64_t(out.st_mtim.tv_sec) * 1'000'000'000 + out.st_mtim.tv_nsec};
}

}  // namespace easydel::files
