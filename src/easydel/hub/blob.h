// Downloads one file from a hub into the cache: resumes after interruptions, checks the hash, renames into place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace easydel::hub {

// A lock file, held while in scope. One process or thread at a time; others wait.
class Lock {
 public:
  explicit Lock(const std::filesystem::path& file);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_ = -1;
};

struct Download {
  std::string where, url, token;
  // 64 hex digits: SHA-256 of the bytes; 40: git's SHA-1 of the blob; otherwise only a name.
  std::string etag;
  int64_t size = -1;  // -1: unknown
  double stall_seconds = 10;
  int tries = 5;  // each resumes where the previous one stopped
};

// Writes `blob`; during the transfer the bytes are in `blob`.incomplete. UserError: the transfer failed for good, or
// the size or hash is not the announced one (then the bytes are deleted).
void download(const Download& download, const std::filesystem::path& blob,
              const std::function<void(int64_t done)>& progress);

// Git's hash of a file's content.
std::string git_hash_of_file(const std::filesystem::path& file);

}  // namespace easydel::hub
