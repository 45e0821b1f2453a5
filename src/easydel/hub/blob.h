// One file's way from a hub into the cache: resumed where it broke, checked against its hash, put in place whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace easydel::hub {

// Held while in scope, by one process or thread at a time; others wait.
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
  std::string etag;   // 64 hex digits: SHA-256 of the bytes; 40: git's SHA-1 of the blob; else only a name
  int64_t size = -1;  // -1: not known
  double stall_seconds = 10;
  int tries = 5;  // each goes on where the last one broke
};

// Writes `blob`, and beside it `blob`.incomplete while bytes come. UserError: broken for good, another size or hash
// than was said (what came is thrown away).
void download(const Download& download, const std::filesystem::path& blob,
              const std::function<void(int64_t done)>& progress);

// Git's hash of a file's content.
std::string git_hash_of_file(const std::filesystem::path& file);

}  // namespace easydel::hub
