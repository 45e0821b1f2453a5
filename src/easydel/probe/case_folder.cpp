#include "easydel/probe/case_folder.h"

#include <stdlib.h>

#include "easydel/base/error.h"

namespace easydel::probe {

CaseFolder::CaseFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "easydel-vectors-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) refuse(pattern, "cannot make a folder there");
  path_ = pattern;
}

CaseFolder::~CaseFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace easydel::probe
