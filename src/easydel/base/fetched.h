// Files that are not what their name says, because something else was downloaded.
#pragma once

#include <filesystem>

namespace easydel::files {

// UserError if `file` is a Git LFS pointer or a web page (usually an error page) instead of the file itself. Does
// nothing if it does not exist or cannot be read.
void refuse_unfetched(const std::filesystem::path& file);

}  // namespace easydel::files
