// Files with secrets are for their user alone.
#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "easydel/base/error.h"

namespace easydel::server {

// UserError: other users can read the file.
inline void check_private(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0 && (status.st_mode & (S_IRGRP | S_IROTH)) != 0)
    refuse(FilePlace{file.string()}, "can be read by other users", "run: chmod 600 " + file.string());
}

// While one lives, files that the process makes are for its user alone.
class PrivateFiles {
 public:
  PrivateFiles() : before_(::umask(S_IRWXG | S_IRWXO)) {}
  ~PrivateFiles() { ::umask(before_); }
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;

 private:
  mode_t before_;
};

}  // namespace easydel::server
