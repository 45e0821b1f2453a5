// Which file it is and when it was last changed, without reading it.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>

namespace easydel::files {

struct Stamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t changed = 0;  // nanoseconds since 1970, of the contents
  auto operator<=>(const Stamp&) const = default;
};

// UserError: there is no such file.
Stamp stamp_of(const std::filesystem::path& path);

}  // namespace easydel::files
