// What was written into a folder, as a document: {"name": {"bytes": 12, "sha256": "..."}}, and whether it is still
// there.
#pragma once

#include <map>
#include <string>

#include "easydel/base/document.h"
#include "easydel/base/files.h"

namespace easydel::files {

Value listing_of(const std::map<std::string, Recorder::Entry>& written);

// What the folder's first file that differs from its entry in `listing` lacks; empty: all are as listed. Reads each
// file whole. UserError: a file cannot be read.
std::string listing_defect(const fs::path& folder, const Value& listing);

}  // namespace easydel::files
