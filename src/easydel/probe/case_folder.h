// A folder for the files that a recorded case needs; gone with its object.
#pragma once

#include <filesystem>

namespace easydel::probe {

class CaseFolder {
 public:
  CaseFolder();  // UserError if it cannot be created
  ~CaseFolder();
  CaseFolder(const CaseFolder&) = delete;
  CaseFolder& operator=(const CaseFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace easydel::probe
