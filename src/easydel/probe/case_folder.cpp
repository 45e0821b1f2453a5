#include "easydel/probe/case_folder.h"

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"

namespace easydel::probe {

CaseFolder::CaseFolder() { path_ = files::make_temporary_folder("easydel-vectors"); }

CaseFolder::~CaseFolder() {
  try {
    files::remove_all(path_);
  } catch (const UserError& error) {
    log::warning(error.what());
  }
}

}  // namespace easydel::probe
