// SHA-256 of files, remembered by device, inode, size and time, so that a file which has not changed is read once.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "easydel/base/file_stamp.h"

namespace easydel::data {

class FileDigests {
 public:
  // `memory`: a file that keeps them. One that is missing or damaged is begun anew.
  explicit FileDigests(std::filesystem::path memory);
  const std::string& of(const std::filesystem::path& file);
  void remember(const std::filesystem::path& file, std::string sha256);
  // Writes what was added. UserError: the disk fails.
  void save() const;

 private:
  std::filesystem::path memory_;
  std::map<files::Stamp, std::string> known_;
  bool changed_ = false;
};

}  // namespace easydel::data
