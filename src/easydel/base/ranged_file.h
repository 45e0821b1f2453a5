// Files that are elsewhere and are read piece by piece, under paths of their own: nothing of them is on the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace easydel::files {

class RangedFile {
 public:
  virtual ~RangedFile() = default;
  virtual uint64_t size() const = 0;
  // Equal for equal contents, as far as the other side tells.
  virtual std::string version() const = 0;
  // Up to `bytes` bytes from `from` on; fewer only at the end. Thread-safe. UserError: they cannot be had, or the file
  // changed.
  virtual size_t read(uint64_t from, char* to, size_t bytes) = 0;
};

// From now on `path` is this file, for size(), stamp_of() and sha256_of_file() of this layer and for who asks ranged().
// Thread-safe.
void put_ranged(const std::filesystem::path& path, std::shared_ptr<RangedFile> file);
// nullptr: a path of the disk.
std::shared_ptr<RangedFile> ranged(const std::filesystem::path& path);

}  // namespace easydel::files
